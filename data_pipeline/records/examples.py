"""Instances ↔ `tf.train.Example`, without TensorFlow.

Processes that only write records need not load it, and whole batches are encoded at once. The bytes
are those of `tf.train.Example.SerializeToString(deterministic=True)`.

Source:
    https://protobuf.dev/programming-guides/encoding and `tensorflow/core/example/example.proto`.
"""

import functools

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.records.schema import PRETRAINING_FEATURES

# Example, Features and the three lists have one field each, 1. An entry of the map of Features has
# its name in field 1 and its Feature in field 2, and that one of these lists.
_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3
# How the content of a field is laid out: the low three bits of its tag.
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5


def encode_instances(instances):
    """Serialises a batch of instances.

    Args:
        instances: dict of arrays [N, L] (or [N], one value each) of any int or float dtype, with
            the names of `PRETRAINING_FEATURES`; those not required may be absent.

    Returns:
        list of N bytes, each a `tf.train.Example`.

    Raises:
        ValueError: If a name is unknown or missing, the arrays differ in N, or a value of an int64
            feature is negative or not whole.
    """
    columns = []
    for name, values in sorted(_checked(instances).items()):
        if PRETRAINING_FEATURES[name].dtype == "int64":
            kind, payloads = _INT64_LIST, _varint_rows(_whole_numbers(name, values))
        else:
            kind, payloads = _FLOAT_LIST, _equal_rows(values.astype("<f4"))
        columns += [[_header(name, kind, len(payload)) for payload in payloads], payloads]
    entries = map(b"".join, zip(*columns, strict=True))
    return [_start(1, len(record)) + record for record in entries]


def decode_instance(record):
    """Parses one record; meant for a look at it, training parses whole batches in TensorFlow.

    Args:
        record: bytes. A serialised `tf.train.Example`.

    Returns:
        dict from the name of each feature to its values: int64 [L], float32 [L], or for a list of
        bytes object [L]. A feature that has no list is left out.

    Raises:
        InputError: If the bytes are no whole `tf.train.Example`. Damage that changes a value only
            is not seen here; the checksums of the file tell.
    """
    features = {}
    for entry in _messages(b"".join(_messages(record, 1)), 1):
        name = _name(entry)
        features.pop(name, None)  # of entries of one name the last counts
        feature = b"".join(_messages(entry, 2))
        lists = [
            (kind, content)
            for kind, layout, content in _fields(feature)
            if kind in _DECODERS and layout == _DELIMITED
        ]
        if lists:
            kind = lists[-1][0]
            content = b"".join(content for known, content in lists if known == kind)
            features[name] = _DECODERS[kind](content)
    return features


def _checked(instances):
    """Returns the arrays [N, L] once their names and numbers of rows are right."""
    unknown = sorted(instances.keys() - PRETRAINING_FEATURES.keys())
    required = {name for name, feature in PRETRAINING_FEATURES.items() if feature.required}
    missing = sorted(required - instances.keys())
    if unknown or missing:
        raise ValueError(
            "The instances should have the names of `PRETRAINING_FEATURES`. "
            f"Received: unknown {unknown}, missing {missing}."
        )
    arrays = {name: np.asarray(values) for name, values in instances.items()}
    shapes = {name: values.shape for name, values in arrays.items()}
    if {*map(len, shapes.values())} - {1, 2} or len({shape[0] for shape in shapes.values()}) > 1:
        raise ValueError(f"The arrays should be [N, L] with one N. Received: {shapes}.")
    return {
        name: values if values.ndim == 2 else values[:, None] for name, values in arrays.items()
    }


def _whole_numbers(name, values):
    whole, same = values, True
    if not np.can_cast(values.dtype, np.int64):
        with np.errstate(invalid="ignore"):
            whole = values.astype(np.int64)
        same = np.array_equal(whole, values)
    if not same or whole.min(initial=0) < 0:
        raise ValueError(
            f"`{name}` should hold whole numbers from 0 up. "
            f"Received: {values.dtype} from {values.min()} to {values.max()}."
        )
    return whole


def _varint_rows(values):
    """Encodes each row of [N, L]: 7 bits a byte, whose top bit says that more follow."""
    most = -(-int(values.max(initial=1)).bit_length() // 7)
    if most == 1:
        return _equal_rows(values.astype(np.uint8))
    rest = values.astype(np.uint32 if most < 5 else np.uint64)
    encoded = np.empty((*rest.shape, most), np.uint8)
    used = np.ones(encoded.shape, bool)
    for place in range(most):
        more = rest > 127
        encoded[..., place] = (rest & 127).astype(np.uint8) | (more.view(np.uint8) << 7)
        if place + 1 < most:
            used[..., place + 1] = more
        rest >>= 7
    edges = [0, *used.sum(axis=(1, 2)).cumsum().tolist()]
    data = encoded[used].tobytes()
    return [data[begin:end] for begin, end in zip(edges, edges[1:], strict=False)]


def _equal_rows(values):
    data, size = values.tobytes(), values.itemsize * values.shape[1]
    return [data[row * size : row * size + size] for row in range(len(values))]


@functools.lru_cache(maxsize=1 << 14)
def _header(name, kind, size):
    """Returns what precedes a feature's `size` bytes of values in the record."""
    values = _start(1, size) if size else b""
    feature = _start(kind, len(values) + size) + values
    entry = _start(1, len(name)) + name.encode() + _start(2, len(feature) + size) + feature
    return _start(1, len(entry) + size) + entry


def _start(number, size):
    """Returns what precedes the `size` bytes of a delimited field."""
    encoded = bytearray([number << 3 | _DELIMITED])
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    encoded.append(size)
    return bytes(encoded)


def _fields(data):
    """Lists the fields of a message: number, layout and content of each."""
    fields, place = [], 0
    while place < len(data):
        tag, begin = _varint(data, place)
        number, layout = tag >> 3, tag & 7
        if layout == _DELIMITED:
            size, begin = _varint(data, begin)
            place = begin + size
        elif layout == _VARINT:
            place = _varint(data, begin)[1]
        elif layout in (_FIXED64, _FIXED32):
            place = begin + (8 if layout == _FIXED64 else 4)
        else:
            raise _damaged(f"a field of layout {layout}")
        if place > len(data) or not number:
            raise _damaged("a field that is numbered 0 or goes on beyond the end")
        fields.append((number, layout, data[begin:place]))
    return fields


def _contents(data, number, *layouts):
    return [
        content for known, layout, content in _fields(data) if known == number and layout in layouts
    ]


def _messages(data, number):
    return _contents(data, number, _DELIMITED)


def _varint(data, place):
    """Returns the whole number at a place, and the place after it."""
    number = 0
    for shift, byte in enumerate(data[place : place + 10]):
        number |= (byte & 127) << 7 * shift
        if byte < 128:
            return number, place + shift + 1
    raise _damaged("a number without an end")


def _name(entry):
    names = _messages(entry, 1)
    if len(names) != 1:
        raise _damaged(f"a feature with {len(names)} names")
    try:
        return names[0].decode()
    except UnicodeDecodeError as error:
        raise _damaged("the name of a feature is not UTF-8") from error


def _int64_values(data):
    # Packed or not, the numbers stand one after the other.
    encoded = np.frombuffer(b"".join(_contents(data, 1, _VARINT, _DELIMITED)), np.uint8)
    last = encoded < 128
    if last.all():
        return encoded.astype(np.int64)
    ends = np.flatnonzero(last) + 1
    begins = np.append(0, ends[:-1])
    sizes = ends - begins
    if not last[-1] or sizes.max() > 10:
        raise _damaged("a number without an end")
    numbers = np.zeros(len(ends), np.uint64)
    for place in range(sizes.max()):
        more = sizes > place
        bits = (encoded[begins[more] + place] & 127).astype(np.uint64)
        numbers[more] |= bits << np.uint64(7 * place)
    return numbers.view(np.int64)


def _float_values(data):
    data = b"".join(_contents(data, 1, _FIXED32, _DELIMITED))
    if len(data) % 4:
        raise _damaged("a list of floats that is cut")
    return np.frombuffer(data, "<f4").astype(np.float32)


def _bytes_values(data):
    return np.array(_messages(data, 1), object)


def _damaged(what):
    return InputError(f"The record should be a whole tf.train.Example. Received: {what}.")


_DECODERS = {_BYTES_LIST: _bytes_values, _FLOAT_LIST: _float_values, _INT64_LIST: _int64_values}
