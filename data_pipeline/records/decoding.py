"""A batch of serialized records → arrays of fixed shape, checked.

`tf.io.parse_example` parses the batch. A batch that it cannot parse, or whose values do not fit the
dataset, is decoded record by record: to name the record that is wrong, or because TensorFlow's
parser rejects some valid ways to lay out a message.

TensorFlow is imported when records are parsed: what only checks files and bytes does not need it.
"""

import numpy as np
from google.protobuf.message import DecodeError

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.examples import PRETRAINING_FEATURES, REQUIRED_FEATURES, feature_length
from data_pipeline.records.record_files import RecordFiles

_DTYPES = {"bytes_list": object, "float_list": np.float32, "int64_list": np.int64}


def read_features(records: RecordFiles, numbers: np.ndarray, with_masks: bool = True):
    """Reads and parses the records of these numbers, see `decode_batch`; errors name the record."""

    def name_of(row):
        return records.name_of(int(numbers[row]))

    return decode_batch(records.read(numbers), records.info, with_masks, name_of)


def decode_batch(records: list[bytes], info: DatasetInfo, with_masks: bool = True, name_of=str):
    """Parses N records.

    Args:
        with_masks: If False the `masked_lm_*` features are not parsed; they are 0.
        name_of: Function that names a record in errors, given its index in the list.

    Returns:
        dict: the required features of `PRETRAINING_FEATURES`, int32 or float32 [N, L].

    Raises:
        InputError: If a record is damaged, lacks a feature, or has values of another type, number
            or range than `info` says.
    """
    lengths = {
        name: feature_length(
            PRETRAINING_FEATURES[name], info.max_seq_length, info.max_predictions_per_seq
        )
        for name in REQUIRED_FEATURES
    }
    names = [name for name in REQUIRED_FEATURES if with_masks or not name.startswith("masked_lm_")]
    parsed = _parse(records, names, lengths, info)
    if parsed is None:
        parsed = _decode_one_by_one(records, names, lengths, info, name_of)
    columns = {}
    for name, length in lengths.items():
        dtype = np.float32 if PRETRAINING_FEATURES[name].dtype == "float32" else np.int32
        column = parsed[name] if name in names else np.zeros((len(records), length))
        columns[name] = column.astype(dtype, copy=False)
    return columns


def decode_instance(record: bytes) -> dict[str, np.ndarray]:
    """Parses one `tf.train.Example`, whatever its features are.

    Returns:
        The values of each feature: int64 [L], float32 [L], or for a list of bytes object [L]. A
        feature without a list is ignored.

    Raises:
        InputError: If the bytes are not a complete `tf.train.Example`. Damage that only changes a
            value is not found here, but by the checksums of the file.
    """
    import tensorflow as tf

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


def _parse(records, names, lengths, info):
    """Returns the columns as TensorFlow parses them, or None if any of them is wrong."""
    import tensorflow as tf

    features = {
        name: tf.io.FixedLenFeature([lengths[name]], PRETRAINING_FEATURES[name].dtype)
        for name in names
    }
    try:
        parsed = tf.io.parse_example(tf.constant(records, tf.string), features)
    except (tf.errors.OpError, UnicodeDecodeError):  # the text of an error may quote the record
        return None
    columns = {name: parsed[name].numpy() for name in names}
    is_wrong = any(_out_of_range(name, values, info) for name, values in columns.items())
    return None if is_wrong else columns


def _decode_one_by_one(records, names, lengths, info, name_of):
    rows = []
    for index, record in enumerate(records):
        try:
            features = decode_instance(record)
        except InputError as error:
            raise InputError(f"{name_of(index)} is damaged: {error}") from error
        row = {name: features.get(name) for name in names}
        for name, values in row.items():
            if fault := _fault(name, values, lengths[name], info):
                raise InputError(f"{name_of(index)} {fault}.")
        rows.append(row)
    return {name: np.stack([row[name] for row in rows]) for name in names}


def _fault(name, values, length, info):
    """Returns the fault of a feature, which completes "Record 17 ...", or None."""
    if values is None:
        return f"has no feature `{name}`"
    dtype = PRETRAINING_FEATURES[name].dtype
    if values.dtype != dtype or len(values) != length:
        received = f"{len(values)} of {values.dtype}"
        return f"must have {length} {dtype} values in `{name}`, but has {received}"
    return _out_of_range(name, values, info)


def _out_of_range(name, values, info):
    """Returns the fault of the values of a feature, or None."""
    limit, meaning = 2**31, "the range of 32-bit integers"
    if name in ("input_ids", "masked_lm_ids"):
        limit, meaning = info.vocab_size, "the size of the vocabulary"
    elif name == "masked_lm_positions":
        limit, meaning = info.max_seq_length, "the length of a record"
    # As unsigned numbers, negative ones are too large as well.
    if values.dtype != np.int64 or values.view(np.uint64).max(initial=0) < limit:
        return None
    wrong = values[(values < 0) | (values >= limit)]
    return f"must have values of `{name}` from 0 to below {limit}, {meaning}, but has {wrong[0]}"
