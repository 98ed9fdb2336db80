"""The index of a TensorFlow checkpoint, checked before TensorFlow reads it.

TensorFlow ends the process if a shape in the index is impossible, and allocates memory for any
other one before it compares it with the data.

The index is a table of LevelDB: blocks of keys and values, and at the end the place of the block
that lists the others. Its values are protocol buffers, `BundleEntryProto`.

Source:
    tensorflow/core/lib/io/format.h and table_builder.cc;
    https://github.com/google/leveldb/blob/main/doc/table_format.md.
"""

import glob
import math
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.tensor_bundle_pb2 import BundleEntryProto

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_VOCABULARY_BYTES, check_regular_file, read_limited

_FOOTER_BYTES, _NUMBER_BYTES = 48, 4


def read_index(prefix: str | Path) -> bytes:
    """Returns the bytes of an index; InputError if it is too large or not a regular file."""
    return read_limited(f"{prefix}.index", MAX_VOCABULARY_BYTES)


def check_index(prefix: str | Path) -> None:
    """Checks the shapes in the index of a checkpoint against the sizes of its data files.

    Raises:
        InputError: If there is no data, the index is damaged or too large, a tensor has an
            impossible shape or is larger than all data, or a file is a pipe or a device.
    """
    path = Path(f"{prefix}.index")
    files = sorted(path.parent.glob(f"{glob.escape(path.stem)}.data-*"))
    if not files and path.is_file():
        raise InputError(
            f"`{prefix}` is not a readable checkpoint: it must have a file of data, such as "
            f"`{path.stem}.data-00000-of-00001`. Received: only {path.name}."
        )
    for file in files:
        check_regular_file(file)
    num_bytes = sum(file.stat().st_size for file in files)
    try:
        shapes = dict(_shapes(read_index(prefix)))
    except (OSError, IndexError, ValueError, TypeError, DecodeError) as error:
        raise InputError(f"`{prefix}` is not a readable checkpoint: {error}") from error
    for name, (shape, item_bytes) in shapes.items():
        if min(shape, default=0) < 0 or math.prod(shape) * item_bytes > num_bytes:
            raise InputError(
                f"`{prefix}` is not a readable checkpoint: the shape of {name} must fit its data, "
                f"{num_bytes:,} bytes. Received: {shape}."
            )


def _shapes(content: bytes) -> Iterator[tuple[str, tuple[list[int], int]]]:
    """Yields (name, (shape, bytes of a number)) of each tensor."""
    footer = content[-_FOOTER_BYTES:]
    _, place = _varint(footer, 0)  # of a block without use here
    _, place = _varint(footer, place)
    for _, handle in _entries(content, footer, place):
        for key, value in _entries(content, handle, 0):
            if key:  # the key of the header is empty
                entry = BundleEntryProto.FromString(value)
                shape = [dimension.size for dimension in entry.shape.dim]
                dtype = tf.dtypes.as_dtype(entry.dtype)
                size = 1 if dtype == tf.string else dtype.size  # texts of any length
                yield key.decode(errors="replace"), (shape, size)


def _entries(content, handle, place) -> Iterator[tuple[bytes, bytes]]:
    """Yields the keys and values of the block whose place and size are in a handle."""
    begin, place = _varint(handle, place)
    size, _ = _varint(handle, place)
    block = content[begin : begin + size]
    if len(block) < size or size < _NUMBER_BYTES or content[begin + size] != 0:
        raise ValueError("the index is damaged or compressed")
    num_restarts = int.from_bytes(block[-_NUMBER_BYTES:], "little")
    end, place, key = size - _NUMBER_BYTES * (num_restarts + 1), 0, b""
    while place < end:
        shared, place = _varint(block, place)
        key_bytes, place = _varint(block, place)
        value_bytes, place = _varint(block, place)
        key = key[:shared] + block[place : place + key_bytes]
        place += key_bytes
        yield key, block[place : place + value_bytes]
        place += value_bytes


def _varint(content, place):
    """Returns the number at a place, in groups of seven bits, and the place after it."""
    value = shift = 0
    while shift < 64:
        byte = content[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
    raise ValueError("the index is damaged: a number has too many bytes")
