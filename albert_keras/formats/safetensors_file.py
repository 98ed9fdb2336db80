"""Files of the safetensors format, by the format's own library."""

import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from data_pipeline.errors import InputError
from data_pipeline.limits import check_memory, check_regular_file

#: Dtypes of weights. NumPy has no bfloat16 (BF16), which is read as float32.
_DTYPES = ("F64", "F32", "F16", "I64")


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """Reads all tensors of a file, with its dtypes; BF16 as float32, which represents it exactly.

    InputError for a file that the library refuses, for other dtypes, and for files larger than the
    memory or that are pipes or devices.

    Source:
        https://github.com/huggingface/safetensors, "Format".
    """
    check_regular_file(path)
    try:
        check_memory(os.path.getsize(path), f"The tensors in `{path}`")
        with safe_open(path, framework="np") as file:
            return {name: _read_tensor(file, name) for name in file.keys()}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error}.") from error
    except (SafetensorError, ValueError) as error:
        raise InputError(f"`{path}` is not a valid safetensors file: {error}.") from error


def write_safetensors(path: str | Path, tensors: dict[str, np.ndarray]):
    """Writes tensors of dtype float64, float32, float16 or int64, as transformers expects them."""
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    save_file(arrays, path, metadata={"format": "pt"})


def _read_tensor(file, name):
    dtype = file.get_slice(name).get_dtype()
    if dtype == "BF16":
        import ml_dtypes  # noqa: F401  (comes with TensorFlow; gives NumPy a bfloat16)

        return file.get_tensor(name).astype(np.float32)
    if dtype not in _DTYPES:
        raise ValueError(f"`{name}` has dtype {dtype}; supported are {', '.join(_DTYPES)} and BF16")
    return file.get_tensor(name)
