import json

import numpy as np
import pytest

from albert_keras.formats.hugging_face import read_safetensors, write_safetensors
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


def test_numbers_of_16_bits_are_read_exactly(tmp_path):
    numbers = np.array([1.5, -2], "<f2").tobytes() + b"\x80\x3f\xc0\xbf"  # bfloat16 1 and -1.5
    header = {"half": entry(0, 4, "F16"), "brain": entry(4, 8, "BF16")}
    found = read_safetensors(write_raw(tmp_path / "a", header, numbers))
    assert found["half"].dtype == np.float16 and found["half"].tolist() == [1.5, -2]
    assert found["brain"].dtype == np.float32 and found["brain"].tolist() == [1, -1.5]


NUMBERS = bytes(8)
#: What the library refuses, one of each kind, and dtypes that weights do not have.
BROKEN = {
    "no-header": (b"", b"", None, "header"),
    "no-json": (b"{'w': 1}", b"", None, "invalid JSON"),
    "dtype": ({"w": entry(dtype="F8_E4M3", shape=(8,))}, NUMBERS, None, "`w` has dtype F8_E4M3"),
    "out-of-range": ({"w": entry()}, bytes(4), None, "file not fully covered"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_file_that_breaks_a_rule_is_refused(tmp_path, case):
    header, numbers, length, named = BROKEN[case]
    path = write_raw(tmp_path / "model.safetensors", header, numbers, length)
    with pytest.raises(InputError, match=named) as error:
        read_safetensors(path)
    assert "model.safetensors" in str(error.value)
