"""Instances ↔ `tf.train.Example`: name, dtype and length of each feature, and the bytes.

The table of features is the contract between records and model; writer and reader are derived from
it. This module does not load TensorFlow. Whole batches are encoded at once; the bytes are the same
as from `tf.train.Example.SerializeToString(deterministic=True)`.

Source:
    https://protobuf.dev/programming-guides/encoding and `tensorflow/core/example/example.proto`.
"""

import functools
from typing import NamedTuple

import numpy as np


class Feature(NamedTuple):
    """One feature of a record."""

    dtype: str  # "int64" or "float32", as `tf.train.Example` stores it
    length: str  # "sequence" (S values), "predictions" (P values) or "scalar" (one value)
    required: bool = True  # whether a reader needs it


#: Features of a pre-training record, named as in google-research/albert
#: (`create_pretraining_data.py`) so that either code reads the other's files. `token_boundary` is 1
#: where a word starts, so that a reader can mask again; `next_sentence_labels` is the sentence
#: order, 1 = swapped (or random, under next-sentence prediction).
PRETRAINING_FEATURES = {
    "input_ids": Feature("int64", "sequence"),
    "input_mask": Feature("int64", "sequence"),
    "segment_ids": Feature("int64", "sequence"),
    "token_boundary": Feature("int64", "sequence", required=False),
    "masked_lm_positions": Feature("int64", "predictions"),
    "masked_lm_ids": Feature("int64", "predictions"),
    "masked_lm_weights": Feature("float32", "predictions"),
    "next_sentence_labels": Feature("int64", "scalar"),
}

#: Names of the features that a reader needs.
REQUIRED_FEATURES = tuple(
    name for name, feature in PRETRAINING_FEATURES.items() if feature.required
)


def feature_length(feature: Feature, max_seq_length: int, max_predictions_per_seq: int) -> int:
    """Returns the number of values of a feature in records of the given lengths."""
    lengths = {"sequence": max_seq_length, "predictions": max_predictions_per_seq, "scalar": 1}
    return lengths[feature.length]


# Numbers of the fields of a Feature, and of the last bits of the tag of a field with a size.
_FLOAT_LIST, _INT64_LIST, _DELIMITED = 2, 3, 2


def encode_instances(instances):
    """Serializes a batch of instances.

    Args:
        instances: dict of arrays [N, L] with the names of `PRETRAINING_FEATURES`; those that are
            not required may be missing. int64 features have integers that are not negative.

    Returns:
        list of N bytes, each a `tf.train.Example`.
    """
    columns = []
    for name, values in sorted(instances.items()):
        if PRETRAINING_FEATURES[name].dtype == "int64":
            kind, payloads = _INT64_LIST, _varint_rows(values)
        else:
            kind, payloads = _FLOAT_LIST, _equal_rows(values.astype("<f4"))
        columns += [[_header(name, kind, len(payload)) for payload in payloads], payloads]
    entries = map(b"".join, zip(*columns, strict=True))
    return [_start(1, len(record)) + record for record in entries]


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
