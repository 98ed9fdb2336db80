"""Records equal tf.train.Example to the byte, whatever they contain, and can be inspected."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.records.examples import (
    PRETRAINING_FEATURES,
    encode_instances,
    feature_length,
)

#: Values around each length of a varint.
EDGES = [0, 1, 127, 128, 16383, 16384, 29999, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1, 2**31]


def random_instances(count, length, predictions, dtype=np.int64, top=30000):
    generator = np.random.default_rng(count + length)
    instances = {}
    for name, feature in PRETRAINING_FEATURES.items():
        shape = count, feature_length(feature, length, predictions)
        if feature.dtype == "int64":
            instances[name] = generator.integers(0, top, shape).astype(dtype)
        else:
            instances[name] = generator.random(shape, np.float32)
    return instances


def example_of(features):
    lists = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        if PRETRAINING_FEATURES[name].dtype == "int64"
        else tf.train.Feature(float_list=tf.train.FloatList(value=values))
        for name, values in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=lists))


def by_tensorflow(instances):
    count = len(next(iter(instances.values())))
    rows = [
        {name: values[row].tolist() for name, values in instances.items()} for row in range(count)
    ]
    return [example_of(row).SerializeToString(deterministic=True) for row in rows]


@pytest.mark.parametrize(
    "count, length, predictions, dtype, top",
    [
        (40, 64, 10, np.int64, 30000),
        (7, 512, 77, np.int32, 30000),
        (7, 512, 77, np.uint16, 2),
        (3, 1, 1, np.uint8, 128),
        (2, 300, 20, np.uint64, 2**63),
        (0, 16, 3, np.int64, 2),
    ],
)
def test_the_bytes_are_those_of_tensorflow(count, length, predictions, dtype, top):
    instances = random_instances(count, length, predictions, dtype, top)
    whole = {
        name: values.astype(np.int64) if PRETRAINING_FEATURES[name].dtype == "int64" else values
        for name, values in instances.items()
    }
    assert encode_instances(instances) == by_tensorflow(whole)


@pytest.mark.parametrize("value", EDGES)
def test_values_at_the_edges_of_a_byte_come_out_right(value):
    instances = random_instances(2, 5, 2, top=2)
    instances["input_ids"][1, 3] = value
    instances["next_sentence_labels"][0] = value
    assert encode_instances(instances) == by_tensorflow(instances)
