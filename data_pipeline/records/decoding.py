"""A batch of serialized records → arrays of fixed shape, checked.

TensorFlow is imported when records are parsed: what only checks files and bytes does not need it.
"""

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.examples import PRETRAINING_FEATURES, REQUIRED_FEATURES, feature_length
from data_pipeline.records.record_files import RecordFiles


def read_features(records: RecordFiles, numbers: np.ndarray):
    """Reads and parses the records of these numbers, see `decode_batch`; errors name the record."""

    def name_of(row):
        return records.name_of(int(numbers[row]))

    return decode_batch(records.read(numbers), records.info, name_of)


def decode_batch(records: list[bytes], info: DatasetInfo, name_of=str):
    """Parses N records.

    Args:
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
    try:
        parsed = _parse(records, lengths, info)
    except InputError:
        for row, record in enumerate(records):  # to name the one that is wrong
            try:
                _parse([record], lengths, info)
            except InputError as error:
                raise InputError(f"{name_of(row)} {error}") from error
        raise
    return {
        name: column.astype(np.int32) if column.dtype == np.int64 else column
        for name, column in parsed.items()
    }


def _parse(records, lengths, info):
    """Returns the features with these lengths (dict of int); InputError if any value is wrong."""
    import tensorflow as tf

    features = {
        name: tf.io.FixedLenFeature([length], PRETRAINING_FEATURES[name].dtype)
        for name, length in lengths.items()
    }
    try:
        parsed = tf.io.parse_example(tf.constant(records, tf.string), features)
    except UnicodeDecodeError as error:  # the message of TensorFlow would quote the record
        raise InputError("is damaged: its bytes are no tf.train.Example.") from error
    except tf.errors.OpError as error:
        reason = error.message.partition("Name: <unknown>, ")[2].partition(" [Op:")[0]
        raise InputError(f"does not have the features of this dataset: {reason}") from error
    columns = {name: values.numpy() for name, values in parsed.items()}
    for name, values in columns.items():
        _check_range(name, values, info)
    return columns


def _check_range(name, values, info):
    limit, meaning = 2**31, "the range of 32-bit integers"
    if name in ("input_ids", "masked_lm_ids"):
        limit, meaning = info.vocab_size, "the size of the vocabulary"
    elif name == "masked_lm_positions":
        limit, meaning = info.max_seq_length, "the length of a record"
    # As unsigned numbers, negative ones are too large as well.
    if values.dtype == np.int64 and values.view(np.uint64).max(initial=0) >= limit:
        wrong = values[(values < 0) | (values >= limit)]
        raise InputError(
            f"must have values of `{name}` from 0 to below {limit}, {meaning}. "
            f"Received: {wrong[0]}."
        )
