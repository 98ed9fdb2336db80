"""Scores on held-out records, beside what guessing scores."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.training.evaluate import evaluate
from data_pipeline.errors import InputError, Mistake
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles


@pytest.fixture(scope="module")
def copied_run(tiny_run, tmp_path_factory):
    return shutil.copytree(tiny_run, tmp_path_factory.mktemp("copied") / "run")


@pytest.fixture(scope="module")
def scores(copied_run, held_out_records):
    return evaluate(copied_run, held_out_records)


def test_guesses_are_counted_from_the_labels(scores, held_out_records):
    records = RecordFiles(held_out_records)
    masked, orders = [], []
    for batch in evaluation_dataset(records, 1).as_numpy_iterator():
        masked.extend(batch["masked_lm_ids"][batch["masked_lm_weights"] > 0])
        orders.extend(batch["sentence_order_labels"])
    assert scores.num_predictions == len(masked) and scores.num_records == len(orders)
    assert scores.unigram_accuracy == np.bincount(masked).max() / len(masked)
    assert scores.sentence_order_chance == np.bincount(orders).max() / len(orders)


def test_baselines_are_computed_from_the_training_records(scores, copied_run):
    assert list(scores.baselines) == ["unigram", "bigram"]
    losses = [baseline["masked_lm_loss"] for baseline in scores.baselines.values()]
    assert losses[1] < losses[0]
    logged = json.loads((copied_run / "log.jsonl").read_text().splitlines()[-1])
    assert logged["evaluation"]["baselines"] == scores.baselines


def test_an_export_scores_as_the_run_it_was_made_of_in_batches_of_any_size(
    tiny_export, scores, held_out_records
):
    found = evaluate(tiny_export, held_out_records, batch_size=7)
    assert (found.step, found.overlap) == (12, None) and found.baselines is None
    for name in ("masked_lm_loss", "masked_lm_accuracy", "sentence_order_loss"):
        assert getattr(found, name) == pytest.approx(getattr(scores, name), rel=1e-5)


def test_records_without_labels_have_no_sentence_order(
    copied_run, scores, held_out_records, tmp_path
):
    records = shutil.copytree(held_out_records, tmp_path / "records")
    DatasetInfo.load(records).replace(objective="none").save(records)
    found = evaluate(copied_run, records)
    assert found.masked_lm_loss == pytest.approx(scores.masked_lm_loss, rel=1e-5)
    names = [name for name in scores._fields if name.startswith("sentence_order")]
    assert {getattr(found, name) for name in names} == {None}
    assert None not in {getattr(scores, name) for name in names}


def test_records_of_another_tokenizer_are_refused(copied_run, held_out_records, tmp_path):
    records = shutil.copytree(held_out_records, tmp_path / "records")
    info = DatasetInfo.load(records)
    info.replace(tokenizer_digest="another").save(records)
    with pytest.raises(InputError, match="another one of the same size") as caught:
        evaluate(copied_run, records)
    assert caught.value.mistakes == (Mistake.OTHER_TOKENIZER,)
    info.replace(vocab_size=300).save(records)
    with pytest.raises(InputError, match="300 pieces, not 307"):
        evaluate(copied_run, records)
