import importlib.util
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from albert_keras.formats import hugging_face, torch_file
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


@pytest.fixture(scope="module")
def torch_python():
    """Returns a Python that has PyTorch."""
    if importlib.util.find_spec("torch"):
        return sys.executable
    python = os.environ.get("ALBERT_KERAS_TRANSFORMERS_PYTHON")
    if python is None:
        pytest.skip("needs torch: ALBERT_KERAS_TRANSFORMERS_PYTHON names a Python with it")
    return python


def test_the_trap_works(tmp_path):
    path, mark = write_trap(tmp_path)
    pickle.loads(path.read_bytes())["weight"].close()
    assert mark.exists()


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_a_pickle_is_refused_unless_it_is_trusted(tmp_path, kind):
    path, mark = write_trap(tmp_path, kind)
    with pytest.raises(InputError, match="safetensors.*--trust-pickle"):
        read_torch_file(path)
    (tmp_path / "config.json").write_text('{"model_type": "albert"}')
    assert find(tmp_path).kind in ("hugging-face", "keras-nlp")
    with pytest.raises(InputError, match="--trust-pickle"):
        hugging_face.read(tmp_path)
    assert not mark.exists()


def test_nothing_runs_where_torch_is_missing(tmp_path, monkeypatch):
    path, mark = write_trap(tmp_path)
    no_torch = tmp_path / "modules"
    no_torch.mkdir()
    (no_torch / "torch.py").write_text("raise ImportError('none')\n")
    monkeypatch.setenv("PYTHONPATH", str(no_torch))
    with pytest.raises(InputError, match="PyTorch is needed.*pip install torch"):
        read_torch_file(path, trust_pickle=True)
    assert not mark.exists()


def test_an_early_torch_is_refused(tmp_path, monkeypatch):
    path, mark = write_trap(tmp_path)
    early = tmp_path / "modules"
    early.mkdir()
    (early / "torch.py").write_text("__version__ = '2.5.1+cpu'\n")
    monkeypatch.setenv("PYTHONPATH", str(early))
    with pytest.raises(InputError, match="2.6 or later.*2.5.1"):
        read_torch_file(path, trust_pickle=True)
    assert not mark.exists()


def test_a_module_that_came_with_the_weights_is_not_imported(tmp_path, monkeypatch):
    path, mark = write_trap(tmp_path)
    (tmp_path / "torch.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(InputError):
        read_torch_file(path.name, trust_pickle=True)
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_a_trap_runs_nothing_even_where_it_is_trusted(tmp_path, torch_python, kind):
    path, mark = write_trap(tmp_path, kind)
    with pytest.raises(InputError, match="cannot be read.*weights"):
        read_torch_file(path, trust_pickle=True, python=torch_python)
    assert not mark.exists()


@pytest.mark.slow
def test_tensors_come_in_any_dtype_of_weights(tmp_path, torch_python):
    path = tmp_path / "pytorch_model.bin"
    code = (
        "import sys, torch; x = torch.tensor([[1.5, -2.0], [0.0, 3.0]]); "
        "torch.save({'f32': x.T, 'bf16': x.bfloat16(), 'f16': x.half(), 'f64': x.double(), "
        "'ids': torch.arange(3)[None]}, sys.argv[1])"
    )
    subprocess.run([torch_python, "-c", code, path], check=True, timeout=300)
    found = read_torch_file(path, trust_pickle=True, python=torch_python)
    assert found["f32"].tolist() == [[1.5, 0], [-2, 3]]
    for name in ("bf16", "f16", "f64"):
        assert found[name].tolist() == [[1.5, -2], [0, 3]]
    assert {name: str(array.dtype) for name, array in found.items()} == {
        "f32": "float32",
        "bf16": "float32",
        "f16": "float16",
        "f64": "float64",
        "ids": "int64",
    }
    assert found["ids"].tolist() == [[0, 1, 2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "saved, named",
    [("[1, 2]", "dict of tensors"), ("{'a': 1}", "only tensors"), ("{}", "dict of tensors")]
    + [("{'a': torch.zeros(1).expand(10**9)}", "far more than the file")],
)
def test_anything_but_named_tensors_is_refused(tmp_path, torch_python, saved, named):
    path = tmp_path / "pytorch_model.bin"
    code = f"import sys, torch; torch.save({saved}, sys.argv[1])"
    subprocess.run([torch_python, "-c", code, path], check=True, timeout=300)
    with pytest.raises(InputError, match=named):
        read_torch_file(path, trust_pickle=True, python=torch_python)


def test_the_safe_reader_is_the_only_one_asked():
    source = Path(torch_file.__file__).read_text(encoding="utf-8")
    assert source.count("torch.load") == 1
    assert "weights_only=True" in source and "weights_only=False" not in source
