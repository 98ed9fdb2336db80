"""Files of the safetensors format, by the format's own library and stricter than it."""

import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_JSON_BYTES, check_memory, check_regular_file, parse_json

#: Dtypes of weights. NumPy has no bfloat16 (BF16), which is read as float32.
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64}
_METADATA = "__metadata__"


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """Reads all tensors of a file, with its dtypes; BF16 as float32, which represents it exactly.

    The library refuses a header that is too long or is not JSON, tensors that overlap, leave gaps
    or reach beyond the file, and shapes that do not match their bytes. Refused here as well are
    keys that occur twice, unknown keys, a header that does not start with a brace or has more than
    `MAX_JSON_BYTES`, dtypes that weights do not have, and files larger than the memory or that are
    pipes or devices. All of these are InputErrors.

    Source:
        https://github.com/huggingface/safetensors, "Format".
    """
    check_regular_file(path)
    try:
        check_memory(os.path.getsize(path), f"The tensors in `{path}`")
        with safe_open(path, framework="np") as file:
            _check_header(path)
            return {name: _read_tensor(file, name) for name in file.keys()}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error}.") from error
    except (SafetensorError, ValueError) as error:
        raise InputError(f"`{path}` is not a valid safetensors file: {error}.") from error


def write_safetensors(path: str | Path, tensors: dict[str, np.ndarray]):
    """Writes tensors of dtype float64, float32, float16 or int64, as transformers expects them.

    ValueError if a tensor has another dtype, or the name of the metadata.
    """
    arrays = {}
    for name, array in tensors.items():
        array = np.asarray(array, order="C")
        if name == _METADATA or array.dtype.type not in _DTYPES.values():
            raise ValueError(f"`{name}`, of dtype {array.dtype}, cannot be written as safetensors.")
        arrays[name] = array
    save_file(arrays, path, metadata={"format": "pt"})


def _check_header(path):
    """Refuses what the library accepts."""
    with open(path, "rb") as file:
        num_bytes = int.from_bytes(file.read(8), "little")
        if num_bytes > MAX_JSON_BYTES:
            raise ValueError(f"its header must have at most {MAX_JSON_BYTES:,} bytes")
        text = file.read(num_bytes)
    if not text.startswith(b"{"):
        raise ValueError("its header does not start with a brace")
    header = parse_json(text, object_pairs_hook=_without_duplicates)
    keys = {"dtype", "shape", "data_offsets"}
    for name, entry in header.items():
        if name != _METADATA and not (isinstance(entry, dict) and entry.keys() == keys):
            raise ValueError(f"`{name}` must have a dtype, a shape and data_offsets only")


def _without_duplicates(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("its header has the same key twice")
    return found


def _read_tensor(file, name):
    dtype = file.get_slice(name).get_dtype()
    if dtype == "BF16":
        import ml_dtypes  # noqa: F401  (comes with TensorFlow; gives NumPy a bfloat16)

        return file.get_tensor(name).astype(np.float32)
    if dtype not in _DTYPES:
        raise ValueError(f"`{name}` has dtype {dtype}; supported are {', '.join(_DTYPES)} and BF16")
    return file.get_tensor(name)
