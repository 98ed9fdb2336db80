"""Records equal tf.train.Example to the byte; they are read as TensorFlow does, or refused."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.decoding import decode_batch
from data_pipeline.records.examples import PRETRAINING_FEATURES, encode_instances, feature_length

#: Values around each length of a varint.
EDGES = [0, 1, 127, 128, 16383, 16384, 29999, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1, 2**31]
S, P = 40, 6


def instances_of(count, length, predictions, dtype=np.int64, top=30000):
    generator = np.random.default_rng(count + length)
    instances = {}
    for name, feature in PRETRAINING_FEATURES.items():
        shape = count, feature_length(feature, length, predictions)
        if feature.dtype == "int64":
            instances[name] = generator.integers(0, top, shape).astype(dtype)
        else:
            instances[name] = generator.random(shape, np.float32)
    return instances


def by_tensorflow(instances):
    records = []
    for row in range(len(instances["input_ids"])):
        example = tf.train.Example()
        for name, values in instances.items():
            feature = example.features.feature[name]
            is_int = PRETRAINING_FEATURES[name].dtype == "int64"
            kind = feature.int64_list if is_int else feature.float_list
            kind.value.extend(values[row].tolist())
        records.append(example.SerializeToString(deterministic=True))
    return records


@pytest.mark.parametrize(
    "count, length, predictions, dtype, top",
    [
        (40, 64, 10, np.int64, 30000),
        (7, 512, 77, np.uint16, 2),
        (3, 1, 1, np.uint8, 128),
        (2, 300, 20, np.uint64, 2**63),
        (0, 16, 3, np.int64, 2),
    ],
)
def test_the_bytes_are_those_of_tensorflow(count, length, predictions, dtype, top):
    instances = instances_of(count, length, predictions, dtype, top)
    assert encode_instances(instances) == by_tensorflow(instances)


def test_values_at_the_edges_of_a_byte_come_out_right():
    for value in EDGES:
        instances = instances_of(2, 5, 2, top=2)
        instances["input_ids"][1, 3] = value
        instances["next_sentence_labels"][0] = value
        assert encode_instances(instances) == by_tensorflow(instances), value


def decoded(records, vocab_size, **settings):
    info = DatasetInfo(
        max_seq_length=S,
        max_predictions_per_seq=P,
        vocab_size=vocab_size,
        tokenizer_digest="",
        shards=(),
    )
    return decode_batch(records, info, **settings)


def some_instances(count, vocab_size):
    """Returns instances whose ids take one byte, two or three, side by side."""
    instances = instances_of(count, S, P, top=S)
    for name in ("input_ids", "masked_lm_ids"):
        draw = np.random.default_rng(0).random(instances[name].shape)
        instances[name] = (vocab_size**draw).astype(np.int64)
    return instances


@pytest.mark.parametrize("vocab_size", [128, 30_000])
def test_records_are_decoded(vocab_size):
    given = some_instances(50, vocab_size)
    found = decoded(encode_instances(given), vocab_size)
    assert found.keys() == given.keys() - {"token_boundary"}
    for name, values in found.items():
        np.testing.assert_array_equal(values, given[name])
        assert values.dtype == (np.float32 if name == "masked_lm_weights" else np.int32)


@pytest.mark.parametrize(
    ("name", "values", "fault"),
    [
        ("input_ids", np.full((1, S), 500), "of `input_ids` from 0 to below 500, the size of the"),
        ("input_ids", np.full((1, S), 2**33), "from 0 to below 500.* Received: 8589934592"),
        ("masked_lm_positions", np.full((1, P), S), f"below {S}, the length of a record"),
        ("segment_ids", np.full((1, S), 2**31), "below 2147483648, the range of 32-bit integers"),
        ("input_ids", np.ones((1, S + 1)), "Key: input_ids, .* Number of int64 values != expected"),
        ("masked_lm_weights", np.ones((1, P - 1)), "Key: masked_lm_weights, .* float"),
    ],
)
def test_what_does_not_fit_is_refused(name, values, fault):
    good = encode_instances(some_instances(1, 500))
    wrong = encode_instances(some_instances(1, 500) | {name: values})
    with pytest.raises(InputError, match=rf"Record 1 of `x` .*{fault}"):
        decoded(good + wrong, 500, name_of=lambda row: f"Record {row} of `x`")
