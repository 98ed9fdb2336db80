import json
import os

import numpy as np
import pytest

from albert_keras.formats.safetensors_file import read_safetensors, write_safetensors
from data_pipeline.errors import InputError


def write_raw(path, header, numbers=b"", length=None):
    """Writes a file with a header of any kind: an object, text or bytes."""
    text = header if isinstance(header, bytes | str) else json.dumps(header)
    text = text.encode() if isinstance(text, str) else text
    length = len(text) if length is None else length
    path.write_bytes(length.to_bytes(8, "little") + text + numbers)
    return path


def entry(begin=0, end=8, dtype="F32", shape=(2,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def test_what_is_written_is_read(tmp_path):
    tensors = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3).T,  # not contiguous
        "a": np.array(1.5, np.float32),
        "ids": np.array([[3, -4]]),
        "empty": np.zeros((0, 4), np.float16),
        "double": np.array([1e300]),
    }
    path = tmp_path / "model.safetensors"
    write_safetensors(path, tensors)
    found = read_safetensors(path)
    assert found.keys() == tensors.keys()
    for name, array in tensors.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_bytes_are_those_of_the_library(tmp_path):
    # Written by safetensors 0.8.0: save_file({"w": [1, 2], "b": [3]}, path, {"format": "pt"}).
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"w": np.array([1, 2], np.float32), "b": np.array([3], np.float32)})
    header = (
        b'{"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},'
        b'"w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}'
    )
    padded = header + b" " * (-len(header) % 8)
    numbers = np.array([3, 1, 2], "<f4").tobytes()
    assert path.read_bytes() == len(padded).to_bytes(8, "little") + padded + numbers


def test_numbers_of_16_bits_are_read_exactly(tmp_path):
    numbers = np.array([1.5, -2], "<f2").tobytes() + b"\x80\x3f\xc0\xbf"  # bfloat16 1 and -1.5
    header = {"half": entry(0, 4, "F16"), "brain": entry(4, 8, "BF16")}
    found = read_safetensors(write_raw(tmp_path / "a", header, numbers))
    assert found["half"].dtype == np.float16 and found["half"].tolist() == [1.5, -2]
    assert found["brain"].dtype == np.float32 and found["brain"].tolist() == [1, -1.5]


@pytest.mark.parametrize("dtype", [np.int32, bool, np.complex64])
def test_a_dtype_the_format_of_weights_does_not_need_is_not_written(tmp_path, dtype):
    with pytest.raises(ValueError, match="`w`"):
        write_safetensors(tmp_path / "a", {"w": np.zeros(2, dtype)})


NUMBERS = bytes(8)
#: What the library refuses, one of each kind, and dtypes that weights do not have.
BROKEN = {
    "no-header": (b"", b"", None, "header"),
    "header-huge": ({"w": entry()}, NUMBERS, 2**63, "header too large"),
    "no-json": (b"{'w': 1}", b"", None, "invalid JSON"),
    "deep": (b'{"w":' + b"[" * 200_000, b"", None, "recursion limit"),
    "dtype": ({"w": entry(dtype="F8_E4M3", shape=(8,))}, NUMBERS, None, "`w` has dtype F8_E4M3"),
    "dtype-integer": ({"w": entry(dtype="I32")}, NUMBERS, None, "`w` has dtype I32"),
    "shape": ({"w": entry(shape=(-1, -2))}, NUMBERS, None, "integer `-1`"),
    "out-of-range": ({"w": entry()}, bytes(4), None, "file not fully covered"),
    "overlap": ({"v": entry(), "w": entry(4, 12)}, bytes(12), None, "offset for tensor `w`"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_breaks_a_rule_is_refused(tmp_path, case):
    header, numbers, length, named = BROKEN[case]
    path = write_raw(tmp_path / "model.safetensors", header, numbers, length)
    with pytest.raises(InputError, match=named) as error:
        read_safetensors(path)
    assert "model.safetensors" in str(error.value)


def test_a_file_shorter_than_its_length_or_missing_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x01\x00")
    for place in (path, tmp_path / "none", tmp_path):
        with pytest.raises(InputError):
            read_safetensors(place)


def test_what_no_memory_holds_is_refused_before_it_is_read(tmp_path):
    num_bytes = 10**13
    tensor = entry(end=num_bytes, shape=[num_bytes // 4])
    path = write_raw(tmp_path / "model.safetensors", {"w": tensor})
    os.truncate(path, path.stat().st_size + num_bytes)  # sparse
    with pytest.raises(InputError, match="must fit into the memory.*Received: 10,000.0 GB"):
        read_safetensors(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="must be a regular file"):
        read_safetensors(tmp_path / "pipe")
