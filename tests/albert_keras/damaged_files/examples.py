"""An example of each kind of file that is read from others, and the function that reads it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.old_artifacts import unpack

_LINES = [f"The number {number} is a word in a line." for number in range(300)]


class Example(NamedTuple):
    """Files of one kind: those that are damaged, one at a time, and what reads them."""

    files: tuple[Path, ...]
    read: Callable[[], object]


def yaml(folder):
    from albert_keras.cli.arguments import read_values
    from albert_keras.config import AlbertConfig

    readers = {"config.yaml": read_values, "albert_config.json": AlbertConfig.from_json_file}
    settings = "model:\n  hidden_size: 8\ntraining: {steps: 5, seed: 3}\nlist: [1, 'a']\n"
    (folder / "config.yaml").write_text(settings)
    AlbertConfig().save(folder / "albert_config.json")
    return _each([folder / name for name in readers], lambda path: readers[path.name](path))


def records(folder):
    from data_pipeline import verify_records
    from data_pipeline.records.record_files import RecordFiles

    path = unpack(folder, "records")

    def read():
        verify_records(path)
        found = RecordFiles(path)
        found.read(np.arange(len(found)))

    return Example(_files(path), read)


def run(folder):
    from albert_keras.formats.open_weights import open_weights
    from albert_keras.runs.log_file import read_log
    from albert_keras.runs.run import Run
    from albert_keras.tasks.results import read_results

    path, tuned = unpack(folder, "run"), unpack(folder, "finetuned")
    seed = tuned / "seed-5"

    def read():
        read_log(path)
        Run.open(path).checkpoints.choose(None)
        open_weights(path)
        read_results(tuned)
        Run.open(seed).model_record()

    files = (tuned / "results.json", seed / "model.json", seed / "run.json")
    return Example((*_files(path), *files), read)


def trained_data(folder):
    from albert_keras.runs.trained_data import Digests, read_digests, save_digests

    values = np.arange(50, dtype=np.uint64)
    save_digests(folder, "rows", Digests(values + 7, ("ab" * 32,)))
    return Example(_files(folder), lambda: read_digests(folder, "rows"))


def checkpoint(folder):
    from albert_keras.runs.tensors import CheckpointTensors

    path = unpack(folder, "run/checkpoints") / "step-00000008"
    (path / "digests.json").unlink()  # as in releases of others

    def read():
        tensors = CheckpointTensors(str(path / "model.ckpt"))
        for name in tensors.shapes:
            tensors.read(name)

    return Example(tuple(path.glob("model.ckpt.*")), read)


def keras(folder):
    from albert_keras.formats.keras_file import KerasFile

    path = unpack(folder, "saved_models/old/model-1.keras")
    return Example((path,), lambda: KerasFile(path).shapes)


def hugging_face(folder):
    return _converted("hugging-face", folder)


def keras_nlp(folder):
    return _converted("keras-nlp", folder)


def release(folder):
    return _converted("google", folder)


def sentencepiece(folder):
    from data_pipeline.tokenizers.tokenization import Tokenizer

    path = unpack(folder, "tokenizer")
    files = (path / "tokenizer.model", path / "tokenizer_config.json")
    return Example(files, lambda: Tokenizer.load(path).encode("The number 12 is é."))


def vocabularies(folder):
    """A model of SentencePiece alone, word pieces, and two files of `tokenizers`."""
    from albert_keras.formats.vocabulary import load_tokenizer
    from albert_keras.formats.vocabulary_writing import files_for
    from data_pipeline.tokenizers.byte_bpe import (
        BYTE_CHARACTERS,
        SPECIAL_PIECES,
        BytePieces,
        write_bpe,
    )

    word_pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] the number ##s is . 1 2"
    byte_pieces = BytePieces(
        [*SPECIAL_PIECES, *BYTE_CHARACTERS, "in", "is"], [("i", "n"), ("i", "s")], False, 2
    )
    model = unpack(folder, "tokenizer/tokenizer.model")
    written = files_for(load_tokenizer(model.parent), "hugging-face", 32)
    contents = {
        "spm/tokenizer.model": model.read_bytes(),
        "wordpiece/vocab.txt": "\n".join([*word_pieces.split(), ""]).encode(),
        "bpe/tokenizer.json": write_bpe(byte_pieces),
        "unigram/tokenizer.json": written["tokenizer.json"],
    }
    for name, content in contents.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(content)

    def read(path):
        load_tokenizer(path).encode("The numbers 12 is é.")

    return _each([folder / name for name in contents], read)


def export(folder):
    from albert_keras.serving.predictor import Predictor

    path = unpack(folder, "saved_models/old-topics") / "1"
    return Example(_files(path), lambda: Predictor(path).answer(["a proud baker"]))


def saved_model(folder):
    from albert_keras.serving.predictor import Predictor

    path = unpack(folder, "saved_models/old") / "1"
    (path / "export.json").unlink()  # as in SavedModels of others
    files = (path / "saved_model.pb", *(path / "variables").iterdir())
    return Example(files, lambda: Predictor(path).fill_mask(["the [MASK] sailor"]))


def tables(folder):
    from albert_keras.tasks.tables.files import read_table

    rows = [(f"the text {number}", str(number % 3)) for number in range(30)]
    paths = [folder / f"rows.{ending}" for ending in ("tsv", "csv", "jsonl")]
    for path, delimiter in zip(paths[:2], "\t,", strict=True):
        lines = (delimiter.join(row) for row in [("text", "label"), *rows])
        path.write_text("".join(f"{line}\n" for line in lines))
    paths[2].write_text("".join(json.dumps({"text": t, "label": v}) + "\n" for t, v in rows))
    return _each(paths, lambda path: read_table(path, "text", label="label"))


def corpora(folder):
    from data_pipeline.text.corpus import read_corpus

    paths = [folder / name for name in ("prose.txt", "lines.jsonl", "wiki.txt")]
    paths[0].write_text("\n".join(f"{line}\n" if "9 " in line else line for line in _LINES))
    paths[1].write_text("".join(json.dumps({"title": "a", "text": line}) + "\n" for line in _LINES))
    documents = (f'<doc id="1" url="x" title="{line}">\n{line}\n</doc>\n' for line in _LINES)
    paths[2].write_text("".join(documents))
    return _each(paths, lambda path: list(read_corpus([path])))


def questions(folder):
    from albert_keras.tasks.spans.files import read_questions

    answer = {"text": "number", "answer_start": 4}
    question = [
        {"id": str(n), "question": "What?", "answers": [answer], "is_impossible": False}
        for n in range(5)
    ]
    paragraphs = [{"context": _LINES[0], "qas": question}]
    path = folder / "squad.json"
    path.write_text(json.dumps({"data": [{"title": "a", "paragraphs": paragraphs}]}))
    return _each([path], read_questions)


def tagged_and_choices(folder):
    from albert_keras.tasks.choice.files import read_race
    from albert_keras.tasks.tagging.files import read_tagged

    words = {"words": ["Ada", "slept"], "tags": ["B-PER", "O"]}
    passage = {"id": "high1.txt", "article": "a b", "questions": ["q"] * 2, "answers": ["A", "D"]}
    passage["options"] = [["a", "b", "c", "d"]] * 2
    texts = {
        "tags.txt": "Ada B-PER\nslept O\n\n-DOCSTART- O\n\nShe O\n" * 9,
        "tags.jsonl": (json.dumps(words) + "\n") * 9,
        "race.txt": json.dumps(passage),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)

    def read(path):
        return read_race(path) if path.name.startswith("race") else read_tagged(path)

    return _each([folder / name for name in texts], read)


def vectors(folder):
    from albert_keras.texts.vectors import read_vectors, write_vectors

    path = folder / "vectors.npy"
    description = {"model": "m", "encoder_digest": "a", "tokenizer_digest": "b", "size": 4}
    description |= {"max_seq_length": 8}
    write_vectors(path, _LINES[:20], np.ones([20, 4], np.float32), description)
    return Example(_files(folder), lambda: read_vectors(path))


#: Kinds that are read within milliseconds, for the tests that run by default.
QUICK = (yaml, records, trained_data, sentencepiece, vocabularies, tables, corpora, questions)
QUICK += (tagged_and_choices,)
_SLOW = (run, checkpoint, keras, hugging_face, keras_nlp, release, export, saved_model, vectors)
#: Name of a kind -> the function that makes its example.
KINDS: dict[str, Callable[[Path], Example]] = {one.__name__: one for one in (*QUICK, *_SLOW)}


def _files(folder):
    return tuple(sorted(path for path in folder.rglob("*") if path.is_file()))


def _each(paths, read):
    """Returns the Example of several files that have nothing to do with each other."""
    return Example(tuple(paths), lambda: [read(path) for path in paths])


def _converted(format_name, folder):
    from albert_keras.formats.open_weights import format_module, open_weights
    from albert_keras.formats.vocabulary import load_tokenizer
    from albert_keras.formats.vocabulary_writing import files_for, write_files
    from tests.albert_keras.formats.random_weights import pretraining_weights

    tokenizer = load_tokenizer(unpack(folder / "from", "tokenizer"))
    weights = pretraining_weights(vocab_size=tokenizer.vocab_size)
    files = files_for(tokenizer, format_name, 9)
    path = folder / "model"
    path.mkdir()
    format_module(format_name).write(weights, path)
    write_files(path, files)
    return Example(_files(path), lambda: open_weights(path).in_memory())
