"""Which format a path holds is told by its files, and by the user where they do not tell."""

import os
import types

import pytest

from albert_keras.conversion import formats
from albert_keras.formats.initial_weights import open_weights
from data_pipeline.errors import InputError


@pytest.fixture
def stand_ins(monkeypatch):
    """Puts two formats in the place of all but ours; gives what they take for theirs."""
    taken = {"first": False, "second": False}
    modules = {
        name: types.SimpleNamespace(is_source=lambda path, n=name: taken[n]) for name in taken
    }
    table = {"albert-keras": formats.FORMATS["albert-keras"]}
    monkeypatch.setattr(formats, "FORMATS", table | {name: (name, name) for name in taken})
    load = formats.load_format
    monkeypatch.setattr(formats, "load_format", lambda name: modules.get(name) or load(name))
    return taken


def test_the_one_that_knows_the_path_is_taken(stand_ins, tmp_path):
    stand_ins["second"] = True
    assert formats.detect_format(tmp_path) == "second"


def test_none_and_several_are_errors_that_name_all(stand_ins, tmp_path):
    with pytest.raises(InputError, match=r"one of: albert-keras, first, second\. .*--from"):
        formats.detect_format(tmp_path)
    stand_ins |= {"first": True, "second": True}
    with pytest.raises(InputError, match="several formats: first, second. .* --from"):
        formats.detect_format(tmp_path)


@pytest.mark.parametrize("content", ["[" * 200_000, "{", b"\xff", None])
def test_a_configuration_that_cannot_be_read_is_named(content, tmp_path):
    (tmp_path / "model.safetensors").touch()
    path = tmp_path / "config.json"
    if content is None:
        os.mkfifo(path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match="config.json` (is damaged|cannot be|must be a regular)"):
        formats.detect_format(tmp_path)
    with pytest.raises(InputError, match="config.json` (is damaged|cannot be|must be a regular)"):
        open_weights(tmp_path)


def test_what_is_not_there_is_no_model(tmp_path):
    with pytest.raises(InputError, match="nowhere` does not exist"):
        formats.detect_format(tmp_path / "nowhere")


def test_a_folder_of_ours_is_ours_though_its_files_are_like_those_of_google(small_model):
    assert formats.load_format("google").is_source(small_model)
    assert formats.detect_format(small_model) == "albert-keras"


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(InputError, match="albert-keras, google, .* Received: onnx"):
        formats.load_format("onnx")


def test_a_shape_is_refused_where_the_format_brings_its_own(tmp_path):
    with pytest.raises(InputError, match="`--config` cannot be used with hugging-face"):
        formats.read_format("hugging-face", tmp_path, config=tmp_path / "albert_config.json")
