"""A conversion gives all of a model, says what it did, and overwrites nothing."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.conversion.convert import convert
from albert_keras.formats import own
from albert_keras.formats.detection import CONVERSION_RECORD
from albert_keras.formats.open_model import open_model
from data_pipeline.errors import InputError

TABLE = "bert/embeddings/word_embeddings"


@pytest.fixture(scope="module")
def google(small_model, tmp_path_factory):
    """Returns a release of google-research/albert; tests that change it copy it first."""
    return convert(small_model, tmp_path_factory.mktemp("google") / "model", to="google").path


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_record_tells_where_it_came_from(google, tmp_path):
    result = convert(google, tmp_path / "ours")
    record = json.loads((tmp_path / "ours" / CONVERSION_RECORD).read_text())
    wanted = json.loads(json.dumps(result._asdict() | {"path": None}))
    assert record | {"path": None} == wanted
    assert record["source_format"] == "google" and record["vocabulary"]["pieces"] == 307


def test_nothing_is_overwritten(google, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    with pytest.raises(InputError, match="nothing is ever overwritten.* another TARGET"):
        convert(google, tmp_path / "full")
    assert leftovers(tmp_path / "full") == ["notes"]


def test_a_changed_number_is_named_and_leaves_nothing(google, tmp_path, monkeypatch):
    write = own.write

    def change(weights, folder):
        table = weights.tensors[TABLE] + np.float32(1e-6)
        write(weights._replace(tensors=weights.tensors | {TABLE: table}), folder)

    monkeypatch.setattr(own, "write", change)
    with pytest.raises(InputError, match=f"These tensors differ: {TABLE}. Nothing was written"):
        convert(google, tmp_path / "deep" / "ours")
    assert leftovers(tmp_path) == []


def test_a_vocabulary_of_another_size_is_refused(google, official_model, tmp_path):
    with pytest.raises(InputError, match="must have 307 pieces.* Received: 30,000"):
        convert(google, tmp_path / "ours", tokenizer=official_model)
    assert leftovers(tmp_path) == []


def test_a_vocabulary_and_a_shape_may_be_given(google, tiny_vocabulary, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    for path in google.glob("model.ckpt-best.*"):
        shutil.copy(path, bare)
    shutil.copy(google / "albert_config.json", tmp_path / "shape.json")
    prefix, shape = bare / "model.ckpt-best", tmp_path / "shape.json"
    with pytest.raises(InputError, match="has no albert_config"):
        convert(prefix, tmp_path / "ours")
    assert convert(prefix, tmp_path / "none", config=shape).vocabulary is None
    given = convert(prefix, tmp_path / "ours", config=shape, tokenizer=tiny_vocabulary.path)
    assert given.vocabulary["digest"] == open_model(tmp_path / "ours").tokenizer.digest
