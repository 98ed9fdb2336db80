"""Records come back in a reproducible order, with static shapes, or not at all."""

import shutil
import time

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.reader import (
    RecordFiles,
    evaluation_dataset,
    training_dataset,
    training_numbers,
)


@pytest.fixture
def copied_records(tiny_records, tmp_path):
    shutil.copytree(tiny_records, tmp_path / "records")
    return tmp_path / "records"


def test_each_epoch_sees_each_record_once_in_another_order():
    steps = [training_numbers(step, 10, 25, seed=3) for step in range(5)]
    numbers = np.concatenate(steps)
    assert sorted(numbers[:25]) == sorted(numbers[25:]) == list(range(25))
    assert (numbers[:25] != numbers[25:]).any()
    assert (training_numbers(0, 10, 25, seed=4) != steps[0]).any()


def test_a_reader_that_begins_later_sees_what_it_would_have_seen(tiny_records):
    records = RecordFiles(tiny_records)
    whole = list(training_dataset(records, 8, seed=1).take(40).as_numpy_iterator())
    later = next(training_dataset(records, 8, seed=1, first_step=37).as_numpy_iterator())
    for name, values in later.items():
        np.testing.assert_array_equal(values, whole[37][name])


def test_shapes_are_static(tiny_records):
    shapes = {
        name: spec.shape.as_list()
        for name, spec in training_dataset(RecordFiles(tiny_records), 8, 1).element_spec.items()
    }
    assert shapes == {
        "input_ids": [8, 32],
        "input_mask": [8, 32],
        "segment_ids": [8, 32],
        "masked_lm_positions": [8, 5],
        "masked_lm_ids": [8, 5],
        "masked_lm_weights": [8, 5],
        "sentence_order_labels": [8],
        "example_weights": [8],
    }


def test_it_does_not_read_far_ahead(tiny_records, monkeypatch):
    records, read = RecordFiles(tiny_records), []
    monkeypatch.setattr(records, "read", lambda n: read.append(1) or RecordFiles.read(records, n))
    iterator = training_dataset(records, 8, seed=1).as_numpy_iterator()
    next(iterator)
    time.sleep(0.5)
    assert len(read) < 20


def test_evaluation_counts_each_record_once(tiny_records):
    records = RecordFiles(tiny_records)
    batches = list(evaluation_dataset(records, 64).as_numpy_iterator())
    assert all(len(batch["input_ids"]) == 64 for batch in batches)
    assert sum(batch["example_weights"].sum() for batch in batches) == len(records)


def test_a_folder_without_its_info_file_is_refused(copied_records):
    (copied_records / "dataset_info.json").unlink()
    with pytest.raises(InputError, match="has no dataset_info.json"):
        RecordFiles(copied_records)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no folder of records"):
        RecordFiles(tmp_path / "nowhere")


def test_a_missing_shard_is_named(copied_records):
    (copied_records / "pretraining-00001-of-00002.tfrecord").unlink()
    with pytest.raises(InputError, match="00001-of-00002.tfrecord` is missing"):
        RecordFiles(copied_records)


def test_a_shard_cut_at_a_record_edge_is_refused(copied_records):
    path = copied_records / "pretraining-00000-of-00002.tfrecord"
    data = path.read_bytes()
    first_record = 16 + int.from_bytes(data[:8], "little")
    path.write_bytes(data[:first_record])
    with pytest.raises(InputError, match="should have .* bytes"):
        RecordFiles(copied_records)


def test_a_damaged_info_file_is_refused(copied_records):
    (copied_records / "dataset_info.json").write_text('{"format_version": 1')
    with pytest.raises(InputError, match="is damaged"):
        RecordFiles(copied_records)
