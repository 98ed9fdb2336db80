"""Instances ↔ `tf.train.Example`.

Processes that only write records do not load TensorFlow. Whole batches are encoded at once; the
bytes are the same as from `tf.train.Example.SerializeToString(deterministic=True)`.

Source:
    https://protobuf.dev/programming-guides/encoding and `tensorflow/core/example/example.proto`.
"""

import functools

import numpy as np
from google.protobuf.message import DecodeError

from data_pipeline.errors import InputError
from data_pipeline.records.schema import PRETRAINING_FEATURES, REQUIRED_FEATURES

_DTYPES = {"bytes_list": object, "float_list": np.float32, "int64_list": np.int64}

# Numbers of the fields of a Feature, and of the last bits of the tag of a field with a size.
_FLOAT_LIST, _INT64_LIST, _DELIMITED = 2, 3, 2


def encode_instances(instances):
    """Serializes a batch of instances.

    Args:
        instances: dict of arrays [N, L] with the names of `PRETRAINING_FEATURES`; those that are
            not required may be missing. int64 features have integers that are not negative.

    Returns:
        list of N bytes, each a `tf.train.Example`.

    Raises:
        ValueError: If a name is unknown or missing, or a value is negative.
    """
    unknown = sorted(instances.keys() - PRETRAINING_FEATURES.keys())
    missing = sorted(set(REQUIRED_FEATURES) - instances.keys())
    if unknown or missing:
        raise ValueError(
            "The instances must have the names of `PRETRAINING_FEATURES`. "
            f"Received: unknown {unknown}, missing {missing}."
        )
    columns = []
    for name, values in sorted(instances.items()):
        if PRETRAINING_FEATURES[name].dtype == "int64":
            if (smallest := values.min(initial=0)) < 0:
                raise ValueError(f"`{name}` must not be negative. Received: {smallest}.")
            kind, payloads = _INT64_LIST, _varint_rows(values)
        else:
            kind, payloads = _FLOAT_LIST, _equal_rows(values.astype("<f4"))
        columns += [[_header(name, kind, len(payload)) for payload in payloads], payloads]
    entries = map(b"".join, zip(*columns, strict=True))
    return [_start(1, len(record)) + record for record in entries]


def decode_instance(record: bytes) -> dict[str, np.ndarray]:
    """Parses one `tf.train.Example`; a reader parses whole batches with `decode_batch`.

    Returns:
        The values of each feature: int64 [L], float32 [L], or for a list of bytes object [L]. A
        feature without a list is ignored.

    Raises:
        InputError: If the bytes are not a complete `tf.train.Example`. Damage that only changes a
            value is not found here, but by the checksums of the file.
    """
    import tensorflow as tf  # a build writes records without it

    try:
        example = tf.train.Example.FromString(record)
    except DecodeError as error:
        raise InputError(
            "The record must be a complete tf.train.Example, but its bytes cannot be parsed."
        ) from error
    features = {}
    for name, feature in example.features.feature.items():
        if kind := feature.WhichOneof("kind"):
            features[name] = np.array(getattr(feature, kind).value, _DTYPES[kind])
    return features


def _varint_rows(values):
    """Encodes each row of [N, L]: 7 bits per byte, whose highest bit says that more follow."""
    max_bytes = -(-int(values.max(initial=1)).bit_length() // 7)
    if max_bytes == 1:
        return _equal_rows(values.astype(np.uint8))
    rest = values.astype(np.uint32 if max_bytes < 5 else np.uint64)
    encoded = np.empty((*rest.shape, max_bytes), np.uint8)
    used = np.ones(encoded.shape, bool)
    for index in range(max_bytes):
        more = rest > 127
        encoded[..., index] = (rest & 127).astype(np.uint8) | (more.view(np.uint8) << 7)
        if index + 1 < max_bytes:
            used[..., index + 1] = more
        rest >>= 7
    edges = [0, *used.sum(axis=(1, 2)).cumsum().tolist()]
    data = encoded[used].tobytes()
    return [data[begin:end] for begin, end in zip(edges, edges[1:], strict=False)]


def _equal_rows(values):
    data, size = values.tobytes(), values.itemsize * values.shape[1]
    return [data[row * size : row * size + size] for row in range(len(values))]


@functools.lru_cache(maxsize=1 << 14)
def _header(name, kind, size):
    """Returns the bytes that precede a feature's `size` bytes of values in the record."""
    values = _start(1, size) if size else b""
    feature = _start(kind, len(values) + size) + values
    entry = _start(1, len(name)) + name.encode() + _start(2, len(feature) + size) + feature
    return _start(1, len(entry) + size) + entry


def _start(number, size):
    """Returns the bytes that precede the `size` bytes of a delimited field."""
    encoded = bytearray([number << 3 | _DELIMITED])
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)
