"""What was trained on is saved with a run, and found among the rows to score."""

import os

import numpy as np
import pytest

from albert_keras.runs.trained_data import (
    RECORDS,
    ROWS,
    Digests,
    Overlap,
    find_overlap,
    read_digests,
    save_digests,
)
from data_pipeline.errors import InputError


def digests(rows, *fingerprints, is_sample=False):
    return Digests(np.array(rows, np.uint64), fingerprints, is_sample)


def test_rows_of_several_data_sets_are_counted():
    trained = Digests.merged([digests([11, 12, 13]), digests([17])])
    assert find_overlap(trained, digests([13, 12, 15, 17, 17])) == Overlap(5, 4)
    assert find_overlap(Digests.merged([]), digests([13])) == Overlap(1, 0)


def test_of_a_sample_the_least_number_is_known():
    sample = digests(range(0, 1000, 10), "same", is_sample=True)
    overlap = find_overlap(sample, digests(range(500, 600)))
    assert overlap == Overlap(100, 10, is_estimate=True) and not overlap.is_total
    assert overlap.sentence(RECORDS) == "at least 10 of 100 records were trained on"
    assert find_overlap(sample, digests([1, 2], "same")) == Overlap(2, 2)  # the same records


def test_an_overlap_is_read_from_json():
    assert Overlap.of(Overlap(8, 6)._asdict()) == Overlap(8, 6) and Overlap.of(None) is None


def test_digests_are_read_as_they_were_saved(tmp_path, monkeypatch):
    assert read_digests(tmp_path, ROWS) is None
    saved = Digests.merged([digests([5, 1], "a" * 64), digests([2, 5], "b" * 64, is_sample=True)])
    save_digests(tmp_path, ROWS, saved)
    (tmp_path / "checkpoints" / "step-00000008").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "checkpoints")
    for path in (".", "checkpoints/step-00000008/model.ckpt"):
        found = read_digests(os.path.relpath(tmp_path / path), ROWS)
        assert found.values.tolist() == [1, 2, 5]
        assert found[1:] == saved[1:] == (("a" * 64, "b" * 64), True)
    assert read_digests(tmp_path, RECORDS) is None


def test_a_damaged_file_is_named(tmp_path):
    save_digests(tmp_path, ROWS, digests([5, 1], "a" * 64))
    (path,) = (tmp_path / "trained_on").iterdir()
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match=f"{path.name}` is damaged.*Remove it, and repeat"):
        read_digests(tmp_path, ROWS)
