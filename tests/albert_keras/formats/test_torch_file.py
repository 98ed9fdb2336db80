"""Pickles run nothing: they are refused, or read by PyTorch as tensors only."""

import pickle
import sys
import types
import zipfile

import pytest

from albert_keras.formats import hugging_face
from albert_keras.formats.detection import find
from albert_keras.formats.torch_file import read_torch_file
from data_pipeline.errors import InputError


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (open, (self.mark, "w"))


def write_trap(folder, kind="plain"):
    """Writes a hostile file and returns it and the file it would write."""
    mark, path = folder / "mark", folder / "pytorch_model.bin"
    program = pickle.dumps({"weight": Trap(str(mark))}, protocol=2)
    if kind == "plain":
        path.write_bytes(program)
    else:  # as `torch.save` packs it
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", program)
            archive.writestr("archive/version", b"3\n")
            archive.writestr("archive/byteorder", b"little")
    return path, mark


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_a_pickle_is_refused_unless_it_is_trusted(tmp_path, kind):
    path, mark = write_trap(tmp_path, kind)
    with pytest.raises(InputError, match="safetensors.*--trust-pickle"):
        read_torch_file(path)
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    assert find(tmp_path).kind == "hugging-face"
    with pytest.raises(InputError, match="--trust-pickle"):
        hugging_face.read(tmp_path)
    assert not mark.exists()


def test_nothing_runs_where_torch_is_missing_or_old(tmp_path, monkeypatch):
    path, mark = write_trap(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="PyTorch is needed.*pip install torch"):
        read_torch_file(path, trust_pickle=True)
    early = types.SimpleNamespace(__version__="2.5.1+cpu")
    monkeypatch.setitem(sys.modules, "torch", early)
    with pytest.raises(InputError, match="2.6 or later.*2.5.1"):
        read_torch_file(path, trust_pickle=True)
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_a_trap_runs_nothing_even_where_it_is_trusted(tmp_path, kind):
    pytest.importorskip("torch")
    path, mark = write_trap(tmp_path, kind)
    with pytest.raises(InputError, match="cannot be read"):
        read_torch_file(path, trust_pickle=True)
    assert not mark.exists()


def test_tensors_come_in_any_dtype_of_weights(tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "pytorch_model.bin"
    x = torch.tensor([[1.5, -2.0], [0.0, 3.0]])
    tensors = {"f32": x.T, "bf16": x.bfloat16(), "f16": x.half(), "ids": torch.arange(3)[None]}
    torch.save(tensors, path)
    found = read_torch_file(path, trust_pickle=True)
    assert found["f32"].tolist() == [[1.5, 0], [-2, 3]]
    assert found["bf16"].tolist() == found["f16"].tolist() == [[1.5, -2], [0, 3]]
    kinds = [str(array.dtype) for array in found.values()]
    assert kinds == ["float32", "float32", "float16", "int64"]
    torch.save({"step": 1}, path)
    with pytest.raises(InputError, match="'step' is a int"):
        read_torch_file(path, trust_pickle=True)
