"""What variants lose is counted right, on texts that are the same each time."""

import math

import numpy as np
import pytest

from albert_keras.serving.export.accuracy import (
    NUM_TEXTS,
    compare,
    masked_records,
    masked_texts,
)
from albert_keras.serving.export.source import open_source
from data_pipeline.errors import InputError

#: Two texts with two masks each; the last mask does not count.
BATCH = {
    "masked_lm_ids": np.array([[0, 1], [2, 0]]),
    "masked_lm_weights": np.array([[1.0, 1.0], [1.0, 0.0]]),
}


def logits_of(*probabilities):
    """Makes the function of a model that gives these probabilities, one row per mask."""
    logits = np.log(np.array(probabilities, np.float32)).reshape(2, 2, 3)
    return lambda batch: logits + 5.0


FLOAT32 = logits_of([0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.9, 0.05, 0.05])
VARIANT = logits_of([0.3, 0.5, 0.2], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.01, 0.01, 0.98])


def test_differences_are_those_computed_by_hand():
    loss = compare(FLOAT32, {"int8": VARIANT}, [BATCH])["int8"]
    assert loss.num_predictions == 3
    assert loss.agreement == pytest.approx(2 / 3)
    assert loss.mean_difference == pytest.approx((0.2 + 0.0 + 0.1) / 3, abs=1e-6)
    assert loss.largest_difference == pytest.approx(0.2, abs=1e-6)
    expected = -math.log(0.5 * 0.8 * 0.6) / 3, -math.log(0.3 * 0.8 * 0.7) / 3
    found = (scores["masked_lm_loss"] for scores in (loss.float32_scores, loss.scores))
    assert list(found) == pytest.approx(expected, abs=1e-6)


def test_all_batches_count():
    loss = compare(FLOAT32, {"same": FLOAT32}, [BATCH, BATCH])["same"]
    assert loss.num_predictions == 6 and loss.agreement == 1 and loss.largest_difference == 0


def test_texts_of_the_documentation_have_one_piece_masked_each(tiny_tokenizer):
    batches = masked_texts(tiny_tokenizer, 24)
    batch = {name: np.concatenate([part[name] for part in batches]) for name in batches[0]}
    ids, positions = batch["input_ids"], batch["masked_lm_positions"]
    assert ids.shape == (NUM_TEXTS, 24) and positions.shape == (NUM_TEXTS, 1)
    assert ((ids == tiny_tokenizer.mask_id).sum(axis=1) == 1).all()
    assert (np.take_along_axis(ids, positions, 1) == tiny_tokenizer.mask_id).all()
    special = {tiny_tokenizer.cls_id, tiny_tokenizer.sep_id, tiny_tokenizer.mask_id}
    assert not special & set(batch["masked_lm_ids"].ravel().tolist())
    ends = batch["input_mask"].sum(axis=1) - 1
    assert (ids[np.arange(NUM_TEXTS), ends] == tiny_tokenizer.sep_id).all()


def test_the_shortest_export_has_texts_too(tiny_tokenizer):
    assert sum(len(batch["input_ids"]) for batch in masked_texts(tiny_tokenizer, 8)) == NUM_TEXTS


def test_records_are_taken_once_each(tiny_run, tiny_records):
    batches = masked_records(open_source(tiny_run), tiny_records)
    rows = sum(len(batch["input_ids"]) for batch in batches)
    counted = sum((batch["masked_lm_weights"].sum(axis=1) > 0).sum() for batch in batches)
    assert rows % 16 == 0 and rows - 16 < counted <= min(rows, NUM_TEXTS)


def test_records_that_are_longer_than_the_export_are_refused(tiny_run, tiny_records):
    with pytest.raises(InputError, match="at most 16 tokens"):
        masked_records(open_source(tiny_run, max_seq_length=16), tiny_records)
