"""Weights in PyTorch's own files, which are pickles: programs that run when they are read.

They are read only if the user trusts them, and with PyTorch's `weights_only` reader, which runs
only what creates tensors.
"""

import os
from pathlib import Path

import numpy as np

from albert_keras.formats.detection import convert_command
from data_pipeline.errors import InputError

#: Earlier versions can be made to run code even with `weights_only` (CVE-2025-32434).
_MIN_TORCH = (2, 6)
#: Tensors may share bytes of the file. This bounds how often, so that a small file cannot fill
#: the memory.
_MAX_GROWTH = 16


def read_torch_file(path: str | Path, trust_pickle: bool = False) -> dict[str, np.ndarray]:
    """Reads the tensors of a file written by `torch.save`.

    `trust_pickle` is whether the user trusts whoever wrote the file. bfloat16 becomes float32,
    which represents it exactly.

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
    torch = _library()
    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of any type: the file is a program
        raise InputError(f"`{path}` cannot be read: {error}") from error
    if not isinstance(tensors, dict) or not tensors:
        kind = type(tensors).__name__
        raise InputError(f"`{path}` must contain a dict of tensors. Received: {kind}.")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise InputError(
                f"`{path}` must contain only tensors. {name!r} is a {type(tensor).__name__}."
            )
    size = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    if size > _MAX_GROWTH * os.path.getsize(path):
        raise InputError(f"The tensors of `{path}` have {size:,} bytes, far more than the file.")
    return {name: _to_array(tensor) for name, tensor in tensors.items()}


def _library():
    try:
        import torch
    except ImportError as error:
        raise InputError(
            "PyTorch is needed to read a pickle and is not installed. Run `pip install torch`, or "
            "use `model.safetensors` of the same model."
        ) from error
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version < _MIN_TORCH:
        raise InputError(
            "PyTorch must be 2.6 or later, because earlier versions can be made to run code. "
            f"Received: {torch.__version__}."
        )
    return torch


def _to_array(tensor):
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    array = tensor.detach().numpy()
    return array.astype(np.int64) if array.dtype.kind in "biu" else array
