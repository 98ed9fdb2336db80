import json

import pytest

from albert_keras.formats import hugging_face
from albert_keras.formats.detection import find
from albert_keras.formats.hugging_face import read_safetensors, write_safetensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import assert_same_weights, pretraining_weights

INDEX = "model.safetensors.index.json"


@pytest.fixture
def weights():
    return pretraining_weights()


@pytest.fixture
def source(weights, tmp_path):
    """Returns a folder of transformers with an ALBERT in two files; tests change it."""
    folder = tmp_path / "source"
    folder.mkdir()
    hugging_face.write(weights, folder)
    whole = folder / "model.safetensors"
    tensors = read_safetensors(whole)
    whole.unlink()
    files = {}
    for number, file in enumerate(("model-1.safetensors", "model-2.safetensors")):
        part = {name: tensors[name] for name in sorted(tensors)[number::2]}
        write_safetensors(folder / file, part)
        files |= dict.fromkeys(part, file)
    (folder / INDEX).write_text(json.dumps({"weight_map": files}))
    return folder


def change_index(folder, changed):
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"] = changed(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def test_weights_in_several_files_are_read(weights, source):
    assert find(source).kind == "hugging-face"
    assert_same_weights(hugging_face.read(source), weights)


@pytest.mark.parametrize("name", ["../model-1.safetensors", "..", "sub/model", 3])
def test_a_list_that_leads_out_of_the_folder_is_refused(source, name):
    (source.parent / "model-1.safetensors").write_bytes(
        (source / "model-1.safetensors").read_bytes()
    )
    change_index(source, lambda files: files | {"predictions.bias": name})
    with pytest.raises(InputError, match="files of its own folder|is damaged"):
        hugging_face.read(source)


@pytest.mark.parametrize(
    "changed",
    [
        lambda files: dict.fromkeys(files, "model-1.safetensors"),
        lambda files: {},
        lambda files: list(files),
        lambda files: files | {"predictions.bias": "model-3.safetensors"},
    ],
)
def test_a_list_that_does_not_fit_its_files_is_refused(source, changed):
    change_index(source, changed)
    with pytest.raises(InputError, match="model"):
        hugging_face.read(source)


def test_a_pickle_is_never_opened(weights, source):
    (source / "pytorch_model.bin").write_bytes(b"anything")
    assert_same_weights(hugging_face.read(source), weights)
    (source / INDEX).unlink()
    with pytest.raises(InputError, match="is a pickle.* `python -c .*torch.load.*model.safeten"):
        hugging_face.read(source)


@pytest.mark.parametrize(
    "changes", [{"model_type": "xlm-roberta"}, {"architectures": ["GPT2Model"]}]
)
def test_another_kind_of_model_is_named(source, changes):
    values = json.loads((source / "config.json").read_text())
    del values["model_type"]
    (source / "config.json").write_text(json.dumps(values | changes))
    known = "albert, bert, roberta, distilbert"
    with pytest.raises(InputError, match=f"{known}. Received: '(xlm-roberta|GPT2Model)'"):
        hugging_face.read(source)
