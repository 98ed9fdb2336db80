"""An impossible shape in a checkpoint is refused before TensorFlow ends the process."""

import os

import google_crc32c
import numpy as np
import pytest
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto

from albert_keras.interop import checkpoint_index
from albert_keras.interop.checkpoint_index import check_index
from albert_keras.interop.checkpoint_tensors import CheckpointTensors, write_tensors
from data_pipeline.errors import InputError

ARRAY = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def prefix(tmp_path):
    tensors = {f"bert/{number}": ARRAY for number in range(300)}
    prefix = tmp_path / "model.ckpt"
    write_tensors(prefix, tensors | {"step": np.array(7), "text": np.array(b"a")})
    return prefix


def with_shape(prefix, shape):
    """Writes another index, with one tensor of a shape, and checksums that match."""
    number = checkpoint_index._varint
    content = (prefix.parent / f"{prefix.name}.index").read_bytes()
    footer = content[-48:]
    place = number(footer, number(footer, 0)[1])[1]
    handle = next(checkpoint_index._entries(content, footer, place))[1]
    entries = dict(checkpoint_index._entries(content, handle, 0))
    entry = BundleEntryProto.FromString(entries[b"bert/0"])
    del entry.shape.dim[:]
    for size in shape:
        entry.shape.dim.add(size=size)
    index = bytearray()
    handles = [append(index, {b"": entries[b""], b"bert/0": entry.SerializeToString()})]
    handles += [append(index, {}), append(index, {b"bert/1": handles[0]})]
    footer = (handles[1] + handles[2]).ljust(40, b"\0") + footer[-8:]
    (prefix.parent / f"{prefix.name}.index").write_bytes(bytes(index) + footer)


def append(index, entries):
    """Appends a block to an index; returns its handle."""
    block = b"".join(
        b"\0" + varint(len(key)) + varint(len(value)) + key + value
        for key, value in entries.items()
    )
    block += (0).to_bytes(4, "little") + (1).to_bytes(4, "little")
    handle = varint(len(index)) + varint(len(block))
    crc = google_crc32c.value(block + b"\0")
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    index += block + b"\0" + masked.to_bytes(4, "little")
    return handle


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def test_what_tensorflow_writes_is_read(prefix):
    check_index(prefix)
    tensors = CheckpointTensors(str(prefix))
    assert len(tensors.shapes) == 302 and tensors.read("step") == 7
    with_shape(prefix, (3, 4))
    np.testing.assert_array_equal(CheckpointTensors(str(prefix)).read("bert/0"), ARRAY)


@pytest.mark.parametrize(
    "shape", [(-5, 3), (2**62, 2**62), (10**9, 10**9), (2**31, 8), (10**10,)], ids=str
)
def test_an_impossible_shape_is_refused(prefix, shape):
    with_shape(prefix, shape)
    with pytest.raises(InputError, match="shape of bert/0 must fit its data"):
        CheckpointTensors(str(prefix))


def test_pipes_and_damaged_indices_are_refused(prefix):
    index = prefix.parent / f"{prefix.name}.index"
    content = index.read_bytes()
    for damaged in (b"", content[:100], content[:-48] + b"\xff" * 48, bytes(200)):
        index.write_bytes(damaged)
        with pytest.raises(InputError, match="is not a readable checkpoint"):
            CheckpointTensors(str(prefix))
    index.write_bytes(content)
    (data,) = prefix.parent.glob("*.data-*")
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(InputError, match="must be a regular file"):
        CheckpointTensors(str(prefix))
