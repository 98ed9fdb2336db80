"""Files of the safetensors format, read and written strictly and without PyTorch.

A file is the length of a header, eight bytes with the lowest first, then the header, a JSON object
of name -> dtype, shape and place, then the numbers of all tensors, one after the other.
"""

import json
import math
import os

import numpy as np

from data_pipeline.errors import InputError

#: Dtype in a header -> how its numbers lie. NumPy has no bfloat16, the upper half of a float32.
_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
}
_WRITTEN = {dtype: name for name, dtype in _DTYPES.items() if name != "BF16"}
_MAX_HEADER_BYTES = 100_000_000
_MAX_AXES = 32
_METADATA = "__metadata__"


def read_safetensors(path):
    """Reads all tensors of a file. Its header has to account for each byte, once.

    Args:
        path: str or Path.

    Returns:
        dict of name -> array, in the file's order; of dtype F64, F32, F16 or I64 as it is there,
        BF16 as float32, which holds it exactly.

    Raises:
        InputError: If the file cannot be read, or breaks a rule of the format.

    Source:
        https://github.com/huggingface/safetensors, "Format".
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = _read_header(file, size)
            entries = _checked_entries(header, size - file.tell())
            return {name: _read_tensor(file, *entry) for name, entry in entries.items()}
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path}` is no sound safetensors file: {error}.") from error


def write_safetensors(path, tensors, metadata=None):
    """Writes a file as the library of the format does: the widest dtypes first, then by name.

    Args:
        path: str or Path.
        tensors: dict of name -> array of dtype float64, float32, float16 or int64.
        metadata: dict of str -> str. By default what transformers wants: `{"format": "pt"}`.

    Raises:
        ValueError: If a tensor has another dtype, or the name of the metadata.
    """
    header = {_METADATA: {"format": "pt"} if metadata is None else dict(metadata)}
    ordered, end = [], 0
    for name in sorted(tensors, key=lambda name: (-np.asarray(tensors[name]).itemsize, name)):
        array = np.asarray(tensors[name])
        dtype = array.dtype.newbyteorder("<")
        if name == _METADATA or dtype not in _WRITTEN:
            raise ValueError(f"`{name}`, of dtype {array.dtype}, cannot be written as safetensors.")
        begin, end = end, end + array.nbytes
        header[name] = {
            "dtype": _WRITTEN[dtype],
            "shape": list(array.shape),
            "data_offsets": [begin, end],
        }
        ordered.append((array, dtype))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the numbers are aligned
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array, dtype in ordered:
            file.write(np.ascontiguousarray(array, dtype).data)


def _read_header(file, size):
    """Returns the header (dict); the file is where the numbers begin."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
        raise ValueError(f"its header would have {length:,} bytes, the file has {size:,}")
    text = file.read(length)
    if not text.startswith(b"{"):
        raise ValueError("its header does not begin with a brace")
    return json.loads(
        text.decode("utf-8"), object_pairs_hook=_without_twins, parse_constant=_refused
    )


def _without_twins(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice in its header")
    return found


def _refused(word):
    raise ValueError(f"its header holds {word}, which is no JSON")


def _checked_entries(header, size):
    """Returns a dict of name -> (dtype's name, shape); what follows lies end to end."""
    metadata = header.pop(_METADATA, {})
    is_text = isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
    if not is_text:
        raise ValueError(f"its {_METADATA} is no object of strings")
    places = {name: _checked_place(name, entry) for name, entry in header.items()}
    expected = 0
    for name in sorted(places, key=places.get):
        begin, end = places[name]
        if begin != expected:
            kind = "overlaps another" if begin < expected else "leaves a gap before it"
            raise ValueError(f"`{name}` {kind}: it begins at {begin:,}, not at {expected:,}")
        expected = end
    if expected != size:
        raise ValueError(f"its tensors have {expected:,} bytes, {size:,} are there")
    names = sorted(places, key=places.get)
    return {name: (header[name]["dtype"], header[name]["shape"]) for name in names}


def _checked_place(name, entry):
    """Returns where a tensor lies: (begin, end)."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"`{name}` should have a dtype, a shape and data_offsets alone")
    dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"`{name}` is of dtype {dtype!r}, known are {', '.join(_DTYPES)}")
    if not _are_sizes(shape) or len(shape) > _MAX_AXES or max(shape, default=0) >= 1 << 48:
        raise ValueError(f"`{name}` has no shape")
    if not _are_sizes(place) or len(place) != 2:
        raise ValueError(f"`{name}` should have a begin and an end")
    wanted = math.prod(shape) * _DTYPES[dtype].itemsize
    if place[1] - place[0] != wanted:
        raise ValueError(f"`{name}` wants {wanted:,} bytes, it has {place[1] - place[0]:,}")
    return tuple(place)


def _are_sizes(values):
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _read_tensor(file, dtype, shape):
    stored = _DTYPES[dtype]
    array = np.fromfile(file, stored, math.prod(shape)).reshape(shape)
    if dtype == "BF16":
        return (array.astype("<u4") << 16).view("<f4")
    return array
