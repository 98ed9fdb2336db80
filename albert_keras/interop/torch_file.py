"""Weights in PyTorch's own files, which are pickles: programs that run when they are read.

They are read only where the user trusts them, and even then by PyTorch's reader of weights alone,
which runs nothing but what makes tensors. As a program (`python -m` with the name of this module,
a file and a target) this turns such a file into one of safetensors.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from albert_keras.interop.safetensors_file import read_safetensors, write_safetensors
from data_pipeline.errors import InputError

#: Earlier ones can be made to run code even with `weights_only` (CVE-2025-32434).
_MIN_TORCH = (2, 6)
#: Tensors may share numbers in the file; how often, so that a small file cannot fill the disk.
_MAX_GROWTH = 16
#: Seconds.
_TIMEOUT = 1800


def read_torch_file(path, trust_pickle=False, python=sys.executable):
    """Reads the tensors of a file of `torch.save`, in another process.

    Args:
        path: str or Path. For example `pytorch_model.bin`.
        trust_pickle: bool. Whether the user trusts whoever made the file.
        python: str. The Python to do it, which needs PyTorch; this one by default.

    Returns:
        dict of name -> array; bfloat16 becomes float32, which holds it exactly.

    Raises:
        InputError: If it is not trusted, PyTorch is missing or too old, or the file holds anything
            but named tensors.
    """
    path = Path(path)
    if not trust_pickle:
        raise InputError(
            f"`{path}` is a pickle, a program that runs when it is read: take `model.safetensors` "
            "of the same model, or, if you trust whoever made it, pass --trust-pickle "
            "(`trust_pickle=True`)."
        )
    if not path.is_file():
        raise InputError(f"`{path}` should be a file of weights. There is none.")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "model.safetensors")
        command = [python, "-m", "albert_keras.interop.torch_file", path.absolute(), target]
        # Not where the user stands: a `torch.py` that came with the weights would be imported.
        place = {"cwd": folder, "env": os.environ | {"PYTHONPATH": _python_path()}}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_TIMEOUT, check=False, **place
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"`{path}` could not be read: {error}.") from error
        if done.returncode:
            lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
            raise InputError(f"`{path}` cannot be read: {lines[-1] if lines else 'no words'}")
        return read_safetensors(target)


def main(path, target):
    """Turns a file of `torch.save` into one of safetensors, in this process.

    Args:
        path: str. It may hold nothing but a dict of tensors.
        target: str. The file to write.

    Raises:
        InputError: As `read_torch_file`.
        Exception: Whatever PyTorch raises.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "PyTorch is needed for it and is not installed: `pip install torch`, or take "
            "`model.safetensors` of the same model."
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < _MIN_TORCH:
        raise InputError(
            "PyTorch should be 2.6 or later, as earlier ones can be made to run code. "
            f"Received: {torch.__version__}."
        )
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not tensors:
        raise InputError(f"it should hold a dict of tensors. It holds {type(tensors).__name__}.")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise InputError(f"it should hold tensors alone. {name!r}: {type(tensor).__name__}.")
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if size > _MAX_GROWTH * os.path.getsize(path):
        raise InputError(f"its tensors would have {size:,} bytes, far more than the file.")
    write_safetensors(target, {name: _to_array(tensor) for name, tensor in tensors.items()})


def _to_array(tensor):
    """Returns a tensor as an array that can be written."""
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    array = tensor.detach().numpy()
    return array.astype(np.int64) if array.dtype.kind in "biu" else array


def _python_path():
    """Returns where Python looks for modules, this package first."""
    ours = str(Path(__file__).parents[2])
    return os.pathsep.join(filter(None, (ours, os.environ.get("PYTHONPATH"))))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:
        words = " ".join(str(error).split())
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        sys.stdout.write(f"{kind}{words}\n")
        sys.exit(1)
