"""Batches of records come out as TensorFlow parses them, or are refused with the record's name."""

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.decoding import decode_batch
from data_pipeline.records.examples import (
    PRETRAINING_FEATURES,
    encode_instances,
    feature_length,
)

S, P = 40, 6


def info_of(vocab_size):
    return DatasetInfo(
        max_seq_length=S, max_predictions_per_seq=P, vocab_size=vocab_size, shards=()
    )


def instances(count, vocab_size, seed=0):
    rng = np.random.default_rng(seed)
    # Numbers of one byte, of two and of three side by side.
    scale = vocab_size ** rng.random((count, S + P))
    ids = scale.astype(np.int64)
    return {
        "input_ids": ids[:, :S],
        "input_mask": rng.integers(0, 2, (count, S)),
        "segment_ids": rng.integers(0, 2, (count, S)),
        "masked_lm_positions": rng.integers(0, S, (count, P)),
        "masked_lm_ids": ids[:, S:],
        "masked_lm_weights": rng.random((count, P), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (count, 1)),
    }


def parsed_by_tensorflow(records):
    schema = {
        name: tf.io.FixedLenFeature([feature_length(feature, S, P)], feature.dtype)
        for name, feature in PRETRAINING_FEATURES.items()
        if feature.required
    }
    return {k: v.numpy() for k, v in tf.io.parse_example(tf.constant(records), schema).items()}


@pytest.mark.parametrize("vocab_size", [128, 30_000])
def test_it_agrees_with_tensorflow(vocab_size):
    records = encode_instances(instances(50, vocab_size))
    decoded, parsed = decode_batch(records, info_of(vocab_size)), parsed_by_tensorflow(records)
    assert decoded.keys() == parsed.keys()
    for name, values in parsed.items():
        np.testing.assert_array_equal(decoded[name], values)
        assert decoded[name].dtype == (np.float32 if name == "masked_lm_weights" else np.int32)


def test_masks_that_are_not_asked_for_are_zero():
    given = instances(9, 500)
    decoded = decode_batch(encode_instances(given), info_of(500), with_masks=False)
    for name, values in decoded.items():
        expected = np.zeros_like(given[name]) if name.startswith("masked_lm_") else given[name]
        np.testing.assert_array_equal(values, expected)


@pytest.mark.parametrize(
    ("name", "values", "fault"),
    [
        (
            "input_ids",
            np.full((1, S), 500),
            "values of `input_ids` from 0 to below 500, the size of the",
        ),
        ("input_ids", np.full((1, S), 2**33), "from 0 to below 500.* but has 8589934592"),
        ("masked_lm_positions", np.full((1, P), S), f"below {S}, the length of a record"),
        ("segment_ids", np.full((1, S), 2**31), "below 2147483648, the range of 32-bit integers"),
        ("input_ids", np.ones((1, S + 1)), f"must have {S} int64 values in `input_ids`, but"),
        ("masked_lm_weights", np.ones((1, P - 1)), f"must have {P} float32 values"),
    ],
)
def test_what_does_not_fit_is_refused(name, values, fault):
    good = encode_instances(instances(1, 500))
    wrong = encode_instances(instances(1, 500) | {name: values})
    with pytest.raises(InputError, match=rf"Record 1 of `x` .*{fault}"):
        decode_batch(good + wrong, info_of(500), name_of=lambda row: f"Record {row} of `x`")
