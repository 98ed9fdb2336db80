"""Folders of Hugging Face: what transformers computes, to the bit, in files of any age."""

import json

import numpy as np
import pytest

from albert_keras.formats import hugging_face
from albert_keras.formats.hugging_face import read_safetensors, write_safetensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import (
    assert_same_weights,
    pretraining_weights,
)

WORDS, BIAS = "albert.embeddings.word_embeddings.weight", "predictions.bias"
COPIES = {"predictions.decoder.weight": WORDS, "predictions.decoder.bias": BIAS}
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def albert():
    return pretraining_weights()


@pytest.fixture
def source(albert, tmp_path):
    """Returns a folder of transformers with an ALBERT; tests change it."""
    folder = tmp_path / "source"
    folder.mkdir()
    hugging_face.write(albert, folder)
    return folder


def tensors_of(folder):
    return read_safetensors(folder / "model.safetensors")


def values_of(folder):
    return json.loads((folder / "config.json").read_text())


def change(folder, tensors=None, **values):
    """Changes what a folder holds: all its tensors, and some values of its configuration."""
    if tensors is not None:
        write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(values_of(folder) | values))


def test_names_of_other_days_are_read(albert, source):
    tensors = tensors_of(source)
    old = {
        name.replace("Norm.weight", "Norm.gamma").replace("Norm.bias", "Norm.beta"): array
        for name, array in tensors.items()
    }
    old["albert.embeddings.position_ids"] = np.arange(9)[None]
    old["albert.embeddings.token_type_ids"] = np.zeros((1, 9), np.int64)
    without_prefix = {name.removeprefix("albert."): array for name, array in tensors.items()}
    copies = {name: tensors[original] for name, original in COPIES.items()}
    copies_only = {n: a for n, a in tensors.items() if n not in COPIES.values()} | copies
    for one in (old, without_prefix, tensors | copies, copies_only):
        change(source, one)
        assert_same_weights(hugging_face.read(source), albert)


def test_an_output_layer_of_its_own_is_refused(albert, source):
    tensors = tensors_of(source)
    change(source, tensors | {"predictions.decoder.weight": tensors[WORDS]})
    assert hugging_face.read(source).heads == albert.heads
    for name, original in COPIES.items():
        change(source, tensors | {name: tensors[original] + np.float32(1e-6)})
        with pytest.raises(InputError, match=f"{name} .* must equal {original}"):
            hugging_face.read(source)


def test_one_tensor_under_two_names_is_refused(source):
    tensors = tensors_of(source)
    name = "embeddings.LayerNorm.weight"
    change(source, tensors | {name: tensors[f"albert.{name}"]})
    with pytest.raises(InputError, match=f"albert.{name} twice"):
        hugging_face.read(source)


def test_a_pooler_no_head_wants_is_zeros_and_is_left_out_again(source, tmp_path, caplog):
    tensors = tensors_of(source)
    starts = ("albert.pooler", "sop_classifier")
    kept = {name: array for name, array in tensors.items() if not name.startswith(starts)}
    change(source, kept, architectures=["AlbertForMaskedLM"])
    weights = hugging_face.read(source)
    assert "no pooler" in caplog.text
    assert not weights.arrays["bert/pooler/dense/kernel"].any()
    target = tmp_path / "target"
    target.mkdir()
    hugging_face.write(weights, target)
    assert tensors_of(target).keys() == kept.keys()
    change(source, {n: a for n, a in tensors.items() if not n.startswith("albert.pooler")})
    with pytest.raises(InputError, match="albert.pooler.weight: missing"):
        hugging_face.read(source)


def test_weights_in_several_files_are_read_and_never_a_pickle(albert, source):
    whole = source / "model.safetensors"
    tensors, files = tensors_of(source), {}
    whole.unlink()
    for number in (0, 1):
        file = f"model-{number}.safetensors"
        part = {name: tensors[name] for name in sorted(tensors)[number::2]}
        write_safetensors(source / file, part)
        files |= dict.fromkeys(part, file)
    (source / "pytorch_model.bin").write_bytes(b"anything")
    (source / INDEX).write_text(json.dumps({"weight_map": files}))
    assert_same_weights(hugging_face.read(source), albert)
    (source.parent / "model-1.safetensors").write_bytes(
        (source / "model-1.safetensors").read_bytes()
    )
    for wrong, message in (
        (files | {BIAS: "../model-1.safetensors"}, "files of its own folder"),
        (files | {BIAS: 3}, "files of its own folder|is damaged"),
        (dict.fromkeys(files, "model-1.safetensors"), "missing"),
        (list(files), "is damaged"),
        (files | {BIAS: "model-3.safetensors"}, "model-3"),
    ):
        (source / INDEX).write_text(json.dumps({"weight_map": wrong}))
        with pytest.raises(InputError, match=message):
            hugging_face.read(source)
    (source / INDEX).unlink()
    with pytest.raises(InputError, match="is a pickle.* Use the model.safetensors"):
        hugging_face.read(source)


def entry(begin, end, dtype, *shape):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def write_raw(path, header, numbers):
    """Writes a safetensors file with a header of any kind."""
    header = json.dumps(header).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    return path


def test_numbers_of_16_bits_are_read_exactly(tmp_path):
    numbers = np.array([1.5, -2], "<f2").tobytes() + b"\x80\x3f\xc0\xbf"  # bfloat16 1 and -1.5
    header = {"half": entry(0, 4, "F16", 2), "brain": entry(4, 8, "BF16", 2)}
    found = read_safetensors(write_raw(tmp_path / "a", header, numbers))
    assert found["half"].dtype == np.float16 and found["half"].tolist() == [1.5, -2]
    assert found["brain"].dtype == np.float32 and found["brain"].tolist() == [1, -1.5]


def test_tensors_of_another_type_are_refused(tmp_path):
    header = {"w": entry(0, 8, "F8_E4M3", 8)}
    path = write_raw(tmp_path / "model.safetensors", header, bytes(8))
    with pytest.raises(InputError, match="`w` has dtype F8_E4M3") as error:
        read_safetensors(path)
    assert "model.safetensors" in str(error.value)
