"""A batch of serialised records → arrays of fixed shape, in one compiled pass.

Records as this project, google-research/albert and TensorFlow write them are read by a loop that
knows where everything stands; whatever is laid out in another valid way is parsed step by step.
Nothing that does not fit its place gets through: an id beyond the vocabulary or a position beyond
the record would be read, and written, outside of the arrays.
"""

import functools

import numpy as np

from data_pipeline.compiled import compiled
from data_pipeline.errors import InputError
from data_pipeline.records.examples import decode_instance
from data_pipeline.records.schema import (
    PRETRAINING_FEATURES,
    feature_length,
    feature_limits,
    schema_fault,
)

#: Where columns begin, in values of four bytes: TensorFlow takes arrays that begin so as they are,
#: and copies others.
_ALIGNMENT = 16
#: Most bytes of a whole number of 32 bits, seven bits in each.
_LONGEST_NUMBER = 5
# Tags of the first two fields of a message, and of a list of floats and of whole numbers.
_FIRST, _SECOND = np.uint8(0x0A), np.uint8(0x12)
_LIST_TAGS = {"float32": 0x12, "int64": 0x1A}


def decode_batch(records, info, with_masks=True, name_of=str):
    """Parses serialised records.

    Args:
        records: list of N bytes. Each a `tf.train.Example`.
        info: DatasetInfo. The lengths S and P, and the size of the vocabulary.
        with_masks: bool. False does not look at the `masked_lm_*` features; they are 0.
        name_of: callable. Names a record in errors, given its place in the list.

    Returns:
        dict: the required features of `PRETRAINING_FEATURES`, int32 or float32 [N, L].

    Raises:
        InputError: If a record is damaged, lacks a feature, or has values of another type, number
            or range than `info` says.
    """
    layout = _Layout.of(
        info.max_seq_length,
        info.max_predictions_per_seq,
        info.vocab_size,
        with_masks,
        tuple(info.feature_names.items()),
    )
    count = len(records)
    begins = layout.begins(count)
    values = _aligned(begins[-1])
    values[begins[len(layout.parsed)] :] = 0
    # Room behind the last record, so that the loop may look ahead before it looks where it is.
    padding = bytes(64)
    data = np.frombuffer(b"".join([*records, padding]), np.uint8)
    edges = np.cumsum([0, *map(len, records)])
    plain = np.empty(count, np.bool_)
    _decode(
        data,
        edges,
        layout.characters,
        layout.name_edges,
        layout.tags,
        layout.lengths,
        layout.limits,
        begins,
        values,
        plain,
    )
    columns = {
        name: values[begin : begin + count * length].reshape(count, length).view(dtype)
        for name, begin, length, dtype in zip(
            layout.names, begins.tolist(), layout.lengths.tolist(), layout.dtypes, strict=False
        )
    }
    for row in np.flatnonzero(~plain).tolist():
        decoded = info.with_our_names(decode_instance(records[row]))
        if fault := schema_fault(decoded, info, layout.parsed):
            raise InputError(f"{name_of(row)} {fault}.")
        for name in layout.parsed:
            columns[name][row] = decoded[name]
    return columns


class _Layout:
    """What the loop has to know of the features: arrays with one entry for each."""

    @classmethod
    @functools.lru_cache(maxsize=16)
    def of(cls, *settings):
        return cls(*settings)

    def __init__(self, max_seq_length, max_predictions_per_seq, vocab_size, with_masks, renamed):
        required = [name for name, feature in PRETRAINING_FEATURES.items() if feature.required]
        skipped = [] if with_masks else [n for n in required if n.startswith("masked_lm_")]
        limits = feature_limits(max_seq_length, vocab_size)
        #: Features to parse, and then those to skip: list of str.
        self.parsed = [name for name in required if name not in skipped]
        self.names = self.parsed + skipped
        features = [PRETRAINING_FEATURES[name] for name in self.names]
        lengths = max_seq_length, max_predictions_per_seq
        self.dtypes = ["f4" if feature.dtype == "float32" else "i4" for feature in features]
        self.lengths = np.array([feature_length(feature, *lengths) for feature in features])
        stored = [dict(renamed).get(name, name).encode() for name in self.parsed]
        self.characters = np.frombuffer(b"".join(stored), np.uint8)
        self.name_edges = np.cumsum([0, *map(len, stored)])
        self.tags = np.array(
            [_LIST_TAGS[PRETRAINING_FEATURES[name].dtype] for name in self.parsed], np.uint8
        )
        self.limits = np.array([limits[name][0] for name in self.parsed])

    def begins(self, count):
        """Tells where each column of `count` rows begins, and where the last one ends."""
        sizes = -(-self.lengths * count // _ALIGNMENT) * _ALIGNMENT
        return np.append(0, sizes.cumsum())


def _aligned(size):
    """Makes an int32 array [size] that begins at a multiple of 64 bytes."""
    room = np.empty(size + _ALIGNMENT, np.int32)
    skipped = -(room.ctypes.data // 4) % _ALIGNMENT
    return room[skipped : skipped + size]


@compiled
def _decode(data, edges, names, name_edges, tags, lengths, limits, begins, values, plain):
    """Decodes record by record into `values`; `plain` says of which this was possible."""
    for row in range(len(plain)):
        plain[row] = _decode_row(
            data,
            edges[row],
            edges[row + 1],
            names,
            name_edges,
            tags,
            lengths,
            limits,
            begins,
            values,
            row,
        )


@compiled
def _decode_row(data, place, end, names, name_edges, tags, lengths, limits, begins, values, row):
    # Each message is a tag, its size and its content. All but the entries of the map of features
    # have a single field, so that it has to reach to the end of the message around it.
    place = _enter(data, place, end, _FIRST, end)
    found = 0
    while 0 <= place < end:
        if data[place] != _FIRST:
            return False
        size, place = _number(data, place + 1)
        entry_end = place + size
        if entry_end > end or data[place] != _FIRST:
            return False
        size, place = _number(data, place + 1)
        column = _column(data, place, size, names, name_edges)
        place += size
        if column >= 0:
            place = _enter(data, place, entry_end, _SECOND, entry_end)
            place = _enter(data, place, entry_end, tags[column], entry_end)
            place = _enter(data, place, entry_end, _FIRST, entry_end)
            if place < 0:
                return False
            begin = begins[column] + row * lengths[column]
            out = values[begin : begin + lengths[column]]
            if tags[column] == _SECOND:
                fits = _copy_floats(data[place:entry_end], out)
            else:
                fits = _copy_numbers(data[place:entry_end], out, limits[column])
            if not fits:
                return False
            found |= 1 << column
        place = entry_end
    return place == end and found == (1 << len(tags)) - 1


@compiled
def _enter(data, place, end, tag, message_end):
    """Returns where the content of a field begins that has to end with its message, or -1."""
    if place < 0 or place >= end or data[place] != tag:
        return np.int64(-1)
    size, place = _number(data, place + 1)
    return place if place + size == message_end else np.int64(-1)


@compiled
def _number(data, place):
    """Returns a whole number and where it ends; of a longer one than 28 bits a number too large."""
    value, shift = np.int64(0), 0
    while shift < 28:
        byte = np.int64(data[place])
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    return np.int64(1) << 40, place


@compiled
def _column(data, place, size, names, name_edges):
    """Returns the number of the feature of this name, or -1."""
    for column in range(len(name_edges) - 1):
        begin = name_edges[column]
        if size == name_edges[column + 1] - begin:
            same = True
            for offset in range(size):
                same = same and data[place + offset] == names[begin + offset]
            if same:
                return column
    return -1


@compiled
def _copy_floats(data, out):
    if len(data) != 4 * len(out):
        return False
    for number in range(len(out)):
        at = 4 * number
        low = np.int32(data[at]) | np.int32(data[at + 1]) << 8 | np.int32(data[at + 2]) << 16
        out[number] = low | np.int32(data[at + 3]) << 24
    return True


@compiled
def _copy_numbers(data, out, limit):
    if len(data) == len(out):  # one byte each, if none goes on
        every = np.uint8(0)
        for number in range(len(out)):
            every |= data[number]
            out[number] = data[number]
        return every < 128 and (limit > 127 or out.max() < limit)
    ends = 0
    for at in range(len(data)):
        ends += data[at] < 128
    if ends != len(out) or data[-1] > 127:
        return False
    # Byte by byte without a branch: how long the next number is cannot be foreseen.
    number, value, shift = np.uint32(0), np.int64(0), np.int64(0)
    largest, longest = np.int64(0), np.int64(0)
    for at in range(len(data)):
        byte = np.int64(data[at])
        value |= (byte & 127) << shift
        out[number] = value
        largest, longest = max(largest, value), max(longest, shift)
        more = byte >> 7
        number += np.uint32(1 - more)
        value &= -more
        shift = min(shift + 7 & -more, 56)
    return largest < limit and longest < 7 * _LONGEST_NUMBER
