"""Files of strangers, with flipped bits, cuts, hostile words and values, or pipes in their place.

A damaged file must be read or be refused as the command line does, with exit code 2. In the slow
tests each kind has processes of its own, with limits of memory and time, so that an abort or an
endless loop of a library is a failure too.
"""

import contextlib
import io
import json
import os
import resource
import signal
import zipfile

import numpy as np
import pytest

from albert_keras.cli.arguments import read_values
from albert_keras.cli.output import report_error
from albert_keras.config import AlbertConfig
from albert_keras.formats.open_weights import format_module, open_weights
from albert_keras.formats.vocabulary import load_tokenizer
from albert_keras.formats.vocabulary_writing import files_for, write_files
from albert_keras.serving.predictor import Predictor
from albert_keras.tasks.choice.files import read_race
from albert_keras.tasks.results import read_results
from albert_keras.tasks.spans.files import read_questions
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tagging.files import read_tagged
from data_pipeline import verify_records
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.text.corpus import read_corpus
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.formats.random_weights import pretraining_weights
from tests.benchmarks.measure import in_new_process
from tests.old_artifacts import unpack

_MEMORY = 2 * 2**30
#: Seconds of computation of one case, and of waiting: a busy machine may be slow.
_SECONDS, _WAITING_SECONDS = 60, 600
#: Processes of a kind, as TensorFlow keeps a part of each model that it has loaded, and cases.
_PROCESSES, _CASES = 2, 60

# === Damage

#: What replaces a value in JSON, and what is put into any file.
_VALUES = (None, True, -1, 0, 1e30, 10**30, 2**31, 2**63, "", "x" * 10_000, "\0", "/dev/zero")
_VALUES += ("../../x", [], [[]], [None], {}, {"a": {}}, float("nan"), float("inf"), 0.5)
_WORDS = (b"[" * 3_000, b"1e30", b"-1", b"9" * 5000, b"null", b"NaN", b'{"a": {}}', b"\xff")
_WORDS += (b"\0", b"\n", b"\t", b'"', b"<doc ", b"&a [*a]", b"!!binary x", b"\xed\xa0\x80", b"\r")
_LENGTH = 8  # bytes of the number in front of the header of a safetensors file


def damaged(content, rng):
    """Returns the content of a file with some damage.

    Half of the damage keeps the structure of archives, of JSON and of JSON in front of tensors, so
    that what they contain is read.
    """
    if not content:
        return bytes(rng.integers(256, size=20, dtype="uint8"))
    if rng.integers(2):
        for change in (_in_archive, _in_header, _in_json):
            with contextlib.suppress(ValueError, RecursionError, zipfile.BadZipFile):
                return change(content, rng)
    begin, end = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    kind = rng.integers(4)
    if kind == 0:
        changed = bytearray(content)
        for place in rng.integers(len(content), size=int(rng.integers(1, 9))):
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 1:
        return content[:begin] + content[end:]
    if kind == 2:
        return content[:end] + content[begin:]
    word = _WORDS[rng.integers(len(_WORDS))]
    return content[:begin] + word + content[begin + int(rng.integers(2)) :]


def _in_archive(content, rng):
    if not content.startswith(b"PK"):
        raise ValueError("no archive")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[rng.integers(len(members))]
    members[name] = damaged(members[name], rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


def _in_header(content, rng):
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    if not _LENGTH < end <= len(content):
        raise ValueError("no header")
    header = _in_json(content[_LENGTH:end], rng)
    return len(header).to_bytes(_LENGTH, "little") + header + content[end:]


def _in_json(content, rng):
    value = json.loads(content)
    places, waiting = [], [value]
    while waiting:
        parent = waiting.pop()
        if isinstance(parent, dict | list):
            for key in parent if isinstance(parent, dict) else range(len(parent)):
                places.append((parent, key))
                waiting.append(parent[key])
    if not places:
        raise ValueError("no object or list")
    parent, key = places[rng.integers(len(places))]
    parent[key] = _VALUES[rng.integers(len(_VALUES))]
    return json.dumps(value, indent=2).encode()


# === Kinds of files: a function writes examples, and returns their paths and what reads them


def texts(folder):
    lines = [f"The number {number} is a word in a line." for number in range(300)]
    rows = [(f"the text {number}", str(number % 3)) for number in range(30)]
    table = [("text", "label"), *rows]
    question = {"id": "1", "question": "What?", "is_impossible": False}
    question["answers"] = [{"text": "number", "answer_start": 4}]
    paragraphs = [{"context": lines[0], "qas": [question]}]
    passage = {"id": "high1.txt", "article": "a b", "questions": ["q"] * 2, "answers": ["A", "D"]}
    passage["options"] = [["a", "b", "c", "d"]] * 2
    tagged = {"words": ["Ada", "slept"], "tags": ["B-PER", "O"]}

    def read_rows(path):
        read_table(path, "text", label="label")

    def read_documents(path):
        list(read_corpus([path]))

    def of_objects(values):
        return "".join(json.dumps(value) + "\n" for value in values)

    files = {
        "config.yaml": (read_values, "model:\n  hidden_size: 8\ntraining: {steps: 5, seed: 3}\n"),
        "albert_config.json": (AlbertConfig.from_json_file, json.dumps(AlbertConfig().to_dict())),
        "rows.tsv": (read_rows, "".join("\t".join(row) + "\n" for row in table)),
        "rows.csv": (read_rows, "".join(",".join(row) + "\n" for row in table)),
        "rows.jsonl": (
            read_rows,
            of_objects(dict(zip(table[0], row, strict=True)) for row in rows),
        ),
        "prose.txt": (read_documents, "\n\n".join(lines)),
        "lines.jsonl": (read_documents, of_objects({"text": line} for line in lines)),
        "wiki.txt": (
            read_documents,
            "".join(f'<doc id="1" url="x" title="a">\n{line}\n</doc>\n' for line in lines),
        ),
        "squad.json": (read_questions, json.dumps({"data": [{"paragraphs": paragraphs}]})),
        "race.txt": (read_race, json.dumps(passage)),
        "tags.txt": (read_tagged, "Ada B-PER\nslept O\n\n-DOCSTART- O\n\nShe O\n" * 9),
        "tags.jsonl": (read_tagged, of_objects([tagged] * 9)),
    }
    for name, (_, text) in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in files], lambda: [
        read(folder / name) for name, (read, _) in files.items()
    ]


def records(folder):
    path = unpack(folder, "records")

    def read():
        verify_records(path)
        found = RecordFiles(path)
        found.read(np.arange(len(found)))

    return _files(path), read


def vocabularies(folder):
    own = unpack(folder, "tokenizer")
    (folder / "spm").mkdir()
    (folder / "spm" / "tokenizer.model").write_bytes((own / "tokenizer.model").read_bytes())
    word_pieces = "[PAD] [UNK] [CLS] [SEP] [MASK] the number ##s is . 1 2"
    (folder / "vocab.txt").write_text("\n".join([*word_pieces.split(), ""]))
    written = files_for(load_tokenizer(own), "hugging-face", 32)
    (folder / "tokenizer.json").write_bytes(written["tokenizer.json"])
    others = [folder / name for name in ("spm/tokenizer.model", "vocab.txt", "tokenizer.json")]

    def read():
        Tokenizer.load(own).encode("The number 12 is é.")
        for path in others:
            load_tokenizer(path).encode("The numbers 12 is é.")

    return [*_files(own), *others], read


def run(folder):
    path, tuned = unpack(folder, "run"), unpack(folder, "finetuned")

    def read():
        open_weights(path).in_memory()
        open_weights(tuned / "seed-5")
        read_results(tuned)

    return [*_files(path), tuned / "results.json", tuned / "seed-5" / "model.json"], read


def keras(folder):
    path = unpack(folder, "saved_models/old/model-1.keras")
    return [path], lambda: open_weights(path).in_memory()


def export(folder):
    path = unpack(folder, "saved_models/old-topics") / "1"
    return _files(path), lambda: Predictor(path).answer(["a proud baker"])


def hugging_face(folder, name="hugging-face"):
    tokenizer = load_tokenizer(unpack(folder / "from", "tokenizer"))
    weights = pretraining_weights(vocab_size=tokenizer.vocab_size)
    path = folder / "model"
    path.mkdir()
    format_module(name).write(weights, path)
    write_files(path, files_for(tokenizer, name, 9))
    return _files(path), lambda: open_weights(path).in_memory()


def keras_nlp(folder):
    return hugging_face(folder, "keras-nlp")


def google(folder):
    return hugging_face(folder, "google")


def _files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


#: Kinds that are read within milliseconds, for the tests that run by default.
QUICK = (texts, records, vocabularies)
KINDS = (*QUICK, run, keras, export, hugging_face, keras_nlp, google)


# === The tests


def read_damaged(kind, folder, cases, limit=lambda: None):
    """Reads the files of a kind with the damage of some cases, which are the seeds.

    `limit` is called before each case. RuntimeError names the case that did not end as it must.
    """
    files, read = kind(folder)
    read()
    for case in cases:
        rng = np.random.default_rng([case, len(kind.__name__)])
        path = files[rng.integers(len(files))]
        content = path.read_bytes()
        print(f"case {case}: {path}", flush=True)
        path.unlink()
        if case % 10 != 9:
            path.write_bytes(damaged(content, rng))
        elif rng.integers(2):
            os.mkfifo(path)  # a pipe in which nobody writes
        else:
            path.symlink_to("/dev/zero")
        limit()
        try:
            read()
        except Exception as error:
            with contextlib.redirect_stderr(io.StringIO()) as output:
                code = report_error(error, debug=False)
            if code != 2:
                raise RuntimeError(f"case {case}, `{path}`: {output.getvalue()}") from error
        path.unlink()
        path.write_bytes(content)


def read_within_limits(kind, folder, begin, end):
    """Reads damaged files in this process, which ends if a case takes too long."""

    def limit():
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.alarm(_WAITING_SECONDS)

    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    read_damaged(kind, folder, range(begin, end), limit)


@pytest.mark.parametrize("kind", QUICK)
def test_some_damaged_files_are_read_or_refused(kind, tmp_path):
    read_damaged(kind, tmp_path, range(10_000, 10_020))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    cases = _CASES // 3 if kind is export else _CASES  # a graph is loaded for each
    for begin in range(0, _PROCESSES * cases, cases):
        folder = tmp_path / str(begin)
        folder.mkdir()
        in_new_process(read_within_limits, kind, folder, begin, begin + cases)
