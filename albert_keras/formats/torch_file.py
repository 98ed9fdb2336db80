"""Weights in PyTorch's own files, which are pickles: programs that run when they are read.

They are read only if the user trusts them, in another process and with PyTorch's `weights_only`
reader, which runs only what creates tensors. Run as a program with a file and a target, this
module converts such a file into safetensors.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from albert_keras.formats.detection import convert_command
from albert_keras.formats.safetensors_file import read_safetensors, write_safetensors
from data_pipeline.child_processes import environment, module_command
from data_pipeline.errors import InputError

#: Earlier versions can be made to run code even with `weights_only` (CVE-2025-32434).
_MIN_TORCH = (2, 6)
#: Tensors may share bytes of the file. This bounds how often, so that a small file cannot fill
#: the disk.
_MAX_GROWTH = 16
_TIMEOUT_SECONDS = 1800


def read_torch_file(
    path: str | Path, trust_pickle: bool = False, python: str | None = None
) -> dict[str, np.ndarray]:
    """Reads the tensors of a file written by `torch.save`, in another process.

    `trust_pickle` is whether the user trusts whoever wrote the file; `python`, by
    default this one, reads it and needs PyTorch. bfloat16 becomes float32, which represents it
    exactly.

    Raises:
        InputError: If it is not trusted, PyTorch is missing or too old, or the file contains
            anything but named tensors.
    """
    path = Path(path)
    if not trust_pickle:
        raise InputError(
            f"`{path}` is a pickle, a program that runs when it is read. Use `model.safetensors` "
            "of the same model or, if you trust the author of the file, convert it: "
            f"`{convert_command(path.parent)}` (`trust_pickle=True`)."
        )
    if not path.is_file():
        raise InputError(f"The file of weights `{path}` does not exist.")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "model.safetensors")
        try:
            done = subprocess.run(
                module_command(
                    "albert_keras.formats.torch_file", path.absolute(), target, python=python
                ),
                env=environment(),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"`{path}` could not be read: {error}.") from error
        if done.returncode:
            lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
            raise InputError(f"`{path}` cannot be read: {lines[-1] if lines else 'no message'}")
        return read_safetensors(target)


def main(path: str, target: str):
    """Converts a file written by `torch.save` into safetensors, in this process.

    InputError as in `read_torch_file`; whatever PyTorch raises is passed on.
    """
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "PyTorch is needed to read it and is not installed. Run `pip install torch`, or use "
            "`model.safetensors` of the same model."
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < _MIN_TORCH:
        raise InputError(
            "PyTorch must be 2.6 or later, because earlier versions can be made to run code. "
            f"Received: {torch.__version__}."
        )
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not tensors:
        raise InputError(f"it must contain a dict of tensors. Received: {type(tensors).__name__}.")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise InputError(
                f"it must contain only tensors. {name!r} is a {type(tensor).__name__}."
            )
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if size > _MAX_GROWTH * os.path.getsize(path):
        raise InputError(f"its tensors would take {size:,} bytes, far more than the file.")
    write_safetensors(target, {name: _to_array(tensor) for name, tensor in tensors.items()})


def _to_array(tensor):
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    array = tensor.detach().numpy()
    return array.astype(np.int64) if array.dtype.kind in "biu" else array


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except Exception as error:
        message = " ".join(str(error).split())
        kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        sys.stdout.write(f"{kind}{message}\n")
        sys.exit(1)
