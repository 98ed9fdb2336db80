"""A conversion gives all of a model, says what it did, and overwrites nothing."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.conversion.convert import convert
from albert_keras.formats import own
from albert_keras.formats.detection import CONVERSION_RECORD, OURS
from albert_keras.formats.open_weights import open_weights
from data_pipeline.errors import InputError
from data_pipeline.limits import read_json
from data_pipeline.tokenizers.library_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.formats.random_weights import (
    BERT,
    GROUPS,
    ROBERTA,
    pretraining_weights,
    with_arrays,
)
from tests.albert_keras.serving.small_exports import make_model, write_run
from tests.albert_keras.tasks.small_tasks import make_task

TABLE = "bert/embeddings/word_embeddings"
BOTH = ("masked_lm", "sentence_order")


@pytest.fixture(scope="module")
def own_folder(tiny_tokenizer, tmp_path_factory):
    """Returns a function that writes weights with a vocabulary as a folder of ours."""

    def write(weights, tokenizer=tiny_tokenizer):
        folder = tmp_path_factory.mktemp("own") / "model"
        folder.mkdir()
        own.write(weights, folder)
        tokenizer.save(folder / "tokenizer")
        (folder / CONVERSION_RECORD).write_text('{"format": "albert-keras"}')
        return folder

    return write


@pytest.fixture(scope="module")
def google(own_folder, tmp_path_factory):
    """Returns a release of google-research/albert; tests that change it copy it first."""
    source = own_folder(pretraining_weights(vocab_size=307))
    return convert(source, tmp_path_factory.mktemp("google") / "model", to="google").path


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_record_tells_where_it_came_from(google, tmp_path):
    result = convert(google, tmp_path / "ours")
    record = read_json(tmp_path / "ours" / CONVERSION_RECORD)
    wanted = json.loads(json.dumps(result._asdict() | {"path": None}))
    assert record | {"path": None} == wanted
    assert record["source_format"] == "google" and record["vocabulary"]["pieces"] == 307
    with pytest.raises(InputError, match="nothing is ever overwritten"):
        convert(google, tmp_path / "ours")


def test_what_another_program_saved_is_not_called_ours(tmp_path):
    module = tf.Module()
    module.v = tf.Variable(1.0)
    tf.saved_model.save(module, tmp_path / "module")
    keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)]).save(tmp_path / "other.keras")
    with pytest.raises(InputError, match="weights of the export .*module` are missing"):
        convert(tmp_path / "module", tmp_path / "new", to="hugging-face")
    with pytest.raises(
        InputError, match="must contain a model of albert_keras. Received: Sequential"
    ):
        convert(tmp_path / "other.keras", tmp_path / "new", to="hugging-face")


def test_a_changed_number_is_named_and_leaves_nothing(google, tmp_path, monkeypatch):
    write = own.write

    def change(weights, folder):
        arrays = weights.arrays
        table = arrays[TABLE] + np.float32(1e-6)
        write(with_arrays(weights, arrays | {TABLE: table}), folder)

    monkeypatch.setattr(own, "write", change)
    with pytest.raises(InputError, match=f"These tensors differ: {TABLE}. Nothing was written"):
        convert(google, tmp_path / "deep" / "ours")
    assert leftovers(tmp_path) == []


def test_a_vocabulary_and_a_shape_may_be_given(google, tiny_vocabulary, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in google.glob("model.ckpt-best.*"):
        shutil.copy(path, bare)
    shutil.copy(google / "albert_config.json", tmp_path / "shape.json")
    prefix, shape = bare / "model.ckpt-best", tmp_path / "shape.json"
    with pytest.raises(InputError, match="has no albert_config. .* as `albert_config`"):
        convert(prefix, tmp_path / "ours")
    with pytest.raises(InputError, match="must have 307 pieces.* Received: 16,000"):
        shipped = open_weights("albert-mini-en").place / "tokenizer"
        convert(prefix, tmp_path / "ours", albert_config=shape, tokenizer=shipped)
    assert not (tmp_path / "ours").exists()
    assert convert(prefix, tmp_path / "none", albert_config=shape).vocabulary is None
    given = convert(prefix, tmp_path / "ours", albert_config=shape, tokenizer=tiny_vocabulary.path)
    assert given.vocabulary["digest"] == open_weights(tmp_path / "ours").tokenizer.digest


@pytest.mark.parametrize(
    "name, sizes, left",
    [
        ("google", GROUPS, ()),
        ("google-bert", BERT, ()),
        ("hugging-face", GROUPS, ()),
        ("hugging-face", ROBERTA, ()),
        ("keras-nlp", GROUPS, BOTH),
    ],
    ids=["google", "google-bert", "hugging-face", "roberta", "keras-nlp"],
)
def test_there_and_back_is_the_same_model(
    name, sizes, left, own_folder, tiny_tokenizer, tiny_corpus, tmp_path
):
    if sizes is ROBERTA:
        tiny_tokenizer = Tokenizer.load(train_byte_bpe(tiny_corpus, tmp_path / "bpe", 307).path)
    source = own_folder(pretraining_weights(vocab_size=307, **sizes), tiny_tokenizer)
    there = convert(source, tmp_path / "there", to=name)
    assert (there.left_heads, there.format) == (left, name)
    back = convert(tmp_path / "there", tmp_path / "back")
    assert back.source_format == name
    assert there.encoder_digest == back.encoder_digest
    origins = [open_weights(source), open_weights(tmp_path / "back")]
    first, second = (origin.in_memory() for origin in origins)
    assert second.heads == tuple(head for head in first.heads if head not in left)
    for tensor, array in second.arrays.items():
        assert array.tobytes() == first.arrays[tensor].tobytes(), tensor
    free = {"foreign_keys": {}, "initializer_range": 0.02}
    assert second.albert_config.replace(**free) == first.albert_config.replace(**free)
    assert len({origin.tokenizer.digest for origin in origins}) == 1


def test_word_pieces_travel(own_folder, word_pieces, tmp_path):
    tokenizer = Tokenizer.of_bytes({"vocab.txt": word_pieces})
    source = own_folder(pretraining_weights(vocab_size=307, **BERT), tokenizer)
    for number, to in enumerate((None, "hugging-face", None)):
        target = tmp_path / str(number)
        convert(source, target, to=to or OURS)
        source = target
    first, last = (open_weights(tmp_path / number).tokenizer for number in "02")
    assert first.model_bytes == last.model_bytes == word_pieces
    # With the limits of transformers.
    assert last.config == first.config.replace(program="tokenizers", max_word_characters=100)


def test_the_positions_of_a_roberta_start_after_the_padding_of_its_vocabulary(own_folder, tmp_path):
    source = own_folder(pretraining_weights(vocab_size=307, **ROBERTA))  # its padding is 0
    convert(source, tmp_path / "there", to="hugging-face")
    values = json.loads((tmp_path / "there" / "config.json").read_text())
    assert (values["pad_token_id"], values["max_position_embeddings"]) == (0, 10)


@pytest.mark.parametrize(
    "kind, head, problem, labels",
    [
        ("tagging", "TokenClassification", None, None),
        ("choice", "MultipleChoice", None, None),
        ("multi_label", "SequenceClassification", "multi_label_classification", "xyz"),
        ("multi_regression", "SequenceClassification", "regression", "xyz"),
    ],
)
def test_each_kind_of_task_has_its_class_and_comes_back(
    kind, head, problem, labels, tiny_tokenizer, tiny_corpus, tmp_path, caplog
):
    task = make_task(kind)
    model = make_model(task, tiny_tokenizer)
    run = write_run(tmp_path / "run", task, model, tiny_tokenizer, tiny_corpus)
    written = convert(run, tmp_path / "hf", to="hugging-face").path
    assert ("formats have no thresholds" in caplog.text) == (kind == "multi_label")
    values = read_json(written / "config.json")
    assert values["architectures"] == [f"AlbertFor{head}"]
    assert values.get("problem_type") == problem
    if labels is not None:
        assert list(values["id2label"].values()) == list(labels)
    back = convert(written, tmp_path / "back")
    assert back.task == task.config.name
    assert head == "MultipleChoice" or back.labels == tuple(task.labels)
