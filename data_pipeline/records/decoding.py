"""A batch of serialized records → arrays of fixed shape, checked.

`tf.io.parse_example` parses the batch. A batch that it cannot parse, or whose values do not fit the
dataset, is decoded record by record: to name the record that is wrong, or because TensorFlow's
parser rejects some valid ways to lay out a message.
"""

import numpy as np
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.examples import (
    PRETRAINING_FEATURES,
    REQUIRED_FEATURES,
    decode_instance,
    feature_length,
    feature_limits,
    schema_fault,
)
from data_pipeline.records.record_files import RecordFiles


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
    lengths = info.max_seq_length, info.max_predictions_per_seq
    names = [name for name in REQUIRED_FEATURES if with_masks or not name.startswith("masked_lm_")]
    parsed = _parse(records, names, lengths, info)
    if parsed is None:
        parsed = _decode_one_by_one(records, names, info, name_of)
    columns = {}
    for name in REQUIRED_FEATURES:
        feature = PRETRAINING_FEATURES[name]
        dtype = np.float32 if feature.dtype == "float32" else np.int32
        if name in names:
            columns[name] = parsed[name].astype(dtype, copy=False)
        else:
            columns[name] = np.zeros((len(records), feature_length(feature, *lengths)), dtype)
    return columns


def _parse(records, names, lengths, info):
    """Returns the columns as TensorFlow parses them, or None if any of them is wrong."""
    features = {}
    for name in names:
        shape = [feature_length(PRETRAINING_FEATURES[name], *lengths)]
        feature = tf.io.FixedLenFeature(shape, PRETRAINING_FEATURES[name].dtype)
        features[info.feature_names.get(name, name)] = feature
    try:
        parsed = tf.io.parse_example(tf.constant(records, tf.string), features)
    except (tf.errors.OpError, UnicodeDecodeError):  # the text of an error may quote the record
        return None
    limits = feature_limits(info.max_seq_length, info.vocab_size)
    columns = {name: parsed[info.feature_names.get(name, name)].numpy() for name in names}
    for name, values in columns.items():
        # As unsigned numbers, negative ones are too large as well.
        if values.dtype == np.int64 and values.view(np.uint64).max(initial=0) >= limits[name][0]:
            return None
    return columns


def _decode_one_by_one(records, names, info, name_of):
    rows = []
    for index, record in enumerate(records):
        try:
            features = info.with_our_names(decode_instance(record))
        except InputError as error:
            raise InputError(f"{name_of(index)} is damaged: {error}") from error
        if fault := schema_fault(features, info, names):
            raise InputError(f"{name_of(index)} {fault}.")
        rows.append(features)
    return {name: np.stack([row[name] for row in rows]) for name in names}
