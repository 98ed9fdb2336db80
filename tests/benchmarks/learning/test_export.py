"""Peers read the same tokens and are scored on the same masks as ours."""

import json

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks.learning.batches import (
    HELD_OUT,
    TRAINING,
    load,
    masking_function,
    rows_of_batches,
)
from tests.benchmarks.learning.export import write_arrays


@pytest.fixture(scope="module")
def arrays(tiny_records, held_out_records, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "arrays"
    write_arrays(RecordFiles(tiny_records), RecordFiles(held_out_records), folder)
    return folder


def all_rows(folder, names):
    batches = [
        {name: batch[name][batch["example_weights"] > 0] for name in names}
        for batch in evaluation_dataset(RecordFiles(folder), 7).as_numpy_iterator()
    ]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in names}


def test_held_out_arrays_have_the_masks_of_our_scoring(arrays, held_out_records):
    found, expected = load(arrays, "held_out", HELD_OUT), all_rows(held_out_records, HELD_OUT)
    for name in HELD_OUT:
        np.testing.assert_array_equal(found[name], expected[name])


def test_training_arrays_have_the_unmasked_tokens_of_all_records(arrays, tiny_records):
    found = load(arrays, "training", TRAINING)
    expected = all_rows(tiny_records, HELD_OUT)
    original = unmask(*(expected[name] for name in MASKED_FEATURES))
    np.testing.assert_array_equal(found["input_ids"], original)
    np.testing.assert_array_equal(found["segment_ids"], expected["segment_ids"])
    np.testing.assert_array_equal(found["input_mask"], expected["input_mask"])
    mask_id = json.loads((arrays / "vocabulary.json").read_text())["mask_id"]
    assert (expected["input_ids"] == mask_id).any() and not (found["input_ids"] == mask_id).any()


def test_the_arrays_are_written_once(arrays, tiny_records, held_out_records):
    before = {path: path.stat().st_mtime_ns for path in arrays.iterdir()}
    write_arrays(RecordFiles(tiny_records), RecordFiles(held_out_records), arrays)
    assert {path: path.stat().st_mtime_ns for path in arrays.iterdir()} == before


def test_records_without_a_tokenizer_cannot_be_masked(tiny_records, tmp_path):
    import shutil

    shutil.copytree(tiny_records, tmp_path / "records")
    shutil.rmtree(tmp_path / "records" / "tokenizer")
    records = RecordFiles(tmp_path / "records")
    with pytest.raises(InputError, match="must contain a tokenizer"):
        write_arrays(records, records, tmp_path / "arrays")
    assert not (tmp_path / "arrays").exists()


def test_each_epoch_has_every_row_once_in_a_new_order():
    batches = rows_of_batches(10, 4, seed=1)
    rows = [next(batches) for _ in range(5)]  # two epochs
    assert sorted(np.concatenate(rows)) == sorted([*range(10)] * 2)
    others = rows_of_batches(10, 4, seed=2)
    assert not all((next(others) == each).all() for each in rows)


def test_tokens_are_masked_by_the_rule_of_transformers():
    vocabulary = {"size": 1000, "mask_id": 4, "special_ids": [0, 1, 2, 3, 4]}
    ids = np.tile(np.r_[2, np.full(98, 500), 3], (400, 1))
    masked, labels = masking_function(vocabulary, 0.15, seed=1)(ids)
    selected = labels != -100
    assert selected[:, 1:-1].mean() == pytest.approx(0.15, abs=0.01)
    assert not selected[:, [0, -1]].any() and (labels[selected] == 500).all()
    assert (masked[~selected] == ids[~selected]).all()
    assert (masked[selected] == 4).mean() == pytest.approx(0.8, abs=0.02)
    assert (masked[selected] == 500).mean() == pytest.approx(0.1, abs=0.02)
