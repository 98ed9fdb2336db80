"""What variants lose is counted right, on texts that are the same each time."""

import json
import logging
import math

import numpy as np
import pytest

from albert_keras.serving.export.accuracy import (
    NUM_OF_RUN,
    NUM_TEXTS,
    compare,
    masked_records,
    masked_texts,
    prepare_comparison,
)
from albert_keras.serving.export.source import open_source
from data_pipeline.errors import InputError
from tests.albert_keras.serving.small_exports import make_model, write_run
from tests.albert_keras.tasks.small_tasks import make_task

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
    assert loss.float32_loss == pytest.approx(-math.log(0.5 * 0.8 * 0.6) / 3, abs=1e-6)
    assert loss.loss == pytest.approx(-math.log(0.3 * 0.8 * 0.7) / 3, abs=1e-6)


def test_all_batches_count():
    loss = compare(FLOAT32, {"same": FLOAT32}, [BATCH, BATCH])["same"]
    assert loss.num_predictions == 6 and loss.agreement == 1 and loss.largest_difference == 0


def test_a_variant_that_mostly_answers_otherwise_is_warned_of(caplog):
    with caplog.at_level(logging.WARNING):
        compare(FLOAT32, {"good": FLOAT32, "bad": VARIANT}, [BATCH])
    (record,) = caplog.records
    assert record.getMessage().startswith("bad gives") and "66.7 %" in record.getMessage()


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


def test_records_are_taken_once_each(tiny_records, tiny_tokenizer):
    batches = masked_records(tiny_records, tiny_tokenizer.vocab_size, 32)
    rows = sum(len(batch["input_ids"]) for batch in batches)
    counted = sum((batch["masked_lm_weights"].sum(axis=1) > 0).sum() for batch in batches)
    assert rows % 16 == 0 and rows - 16 < counted <= min(rows, NUM_TEXTS)


@pytest.mark.parametrize(
    "fit, rule",
    [
        ((99, 32), "a tokenizer with 307 pieces instead of 99"),
        ((307, 32, "another"), "another one of the same size"),
        ((307, 16), "must not be longer"),
    ],
)
def test_records_that_do_not_fit_are_refused(tiny_records, fit, rule):
    with pytest.raises(InputError, match=rule):
        masked_records(tiny_records, *fit)


def test_a_run_in_another_precision_is_compared_with_its_export(
    tiny_tokenizer, tiny_corpus, tmp_path
):
    task = make_task("classification")
    model = make_model(task, tiny_tokenizer)
    run = write_run(tmp_path / "run", task, model, tiny_tokenizer, tiny_corpus)
    assert open_source(run).load_trained is None
    record = json.loads((run / "run.json").read_text())
    record["config"]["training"]["precision"] = "mixed_bfloat16"
    (run / "run.json").write_text(json.dumps(record))
    source = open_source(run)
    losses = prepare_comparison(source, "float32", (), None)(None, {}, None)
    (loss,) = losses.values()
    assert list(losses) == ["run mixed_bfloat16"] and loss.num_predictions == NUM_OF_RUN
    assert 0 < loss.mean_difference < 0.05 and loss.agreement > 0.8
