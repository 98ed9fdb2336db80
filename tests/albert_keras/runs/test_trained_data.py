"""What was trained on is saved with a run, and found among the rows to score."""

import contextlib
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from albert_keras.runs import trained_data
from albert_keras.runs.trained_data import (
    RECORDS,
    ROWS,
    Digests,
    Overlap,
    find_overlap,
    find_trained,
    has_digests,
    read_digests,
    run_of_weights,
    save_digests,
)
from data_pipeline.errors import InputError


def digests(exact, normalised=None, count=None, fingerprint=""):
    exact = np.array(exact, np.uint64)
    normalised = exact if normalised is None else np.array(normalised, np.uint64)
    return Digests(exact, normalised, count or len(exact), fingerprint)


def test_exact_and_normalised_rows_are_counted():
    trained = (digests([1, 2, 3], [11, 12, 13]), digests([7], [17]))
    data = digests([3, 4, 5, 7, 7], [13, 12, 15, 17, 17])
    assert find_overlap(trained, data) == Overlap(5, 3, 4)
    assert find_trained(trained, data).tolist() == [True, True, False, True, True]
    assert find_overlap((), data) == Overlap(5, 0, 0)


def test_the_same_data_overlap_whatever_was_sampled_of_them():
    sample = digests([4, 9], count=1000, fingerprint="same")
    assert find_overlap([sample], digests([1, 2], fingerprint="same")).is_total


def test_of_a_sample_the_number_is_estimated():
    sample = digests(range(0, 1000, 10), count=1000)
    overlap = find_overlap([sample], digests(range(500, 600)))
    assert overlap == Overlap(100, 100, 100, is_estimate=True) and not overlap.is_total
    assert overlap.sentence(RECORDS) == "about 100 of 100 records were trained on"
    few = find_overlap([sample], digests([*range(500, 600), *range(5000, 5900)]))
    assert (few.rows, few.normalised) == (1000, 100)
    assert find_overlap([sample], digests(range(5000, 6000))) == Overlap(1000, 0, 0)


def test_records_in_other_files_are_the_same_records():
    sample = digests(range(0, 1000, 10), count=1000)
    assert find_overlap([sample], digests(range(1000))).is_total


@pytest.mark.parametrize(
    "overlap, text",
    [
        (Overlap(1500, 1350, 1350), "1,350 of 1,500 rows of `a` were trained on"),
        (Overlap(9, 1, 1), "1 of 9 rows of `a` was trained on"),
        (Overlap(9, 9, 9), "all 9 rows of `a` were trained on"),
        (Overlap(1, 1, 1), "the only row of `a` was trained on"),
        (
            Overlap(9, 2, 5),
            "5 of 9 rows of `a` were trained on (2 exactly, the others differ in case, white "
            "space or Unicode form)",
        ),
    ],
)
def test_an_overlap_is_a_sentence(overlap, text):
    assert overlap.sentence(ROWS, " of `a`") == text


def test_digests_are_read_as_they_were_saved(tmp_path):
    first, second = digests([5, 1], [8, 9], 2, "a" * 64), digests([2], None, 40, "b" * 64)
    assert read_digests(tmp_path, ROWS) == () and not has_digests(tmp_path, ROWS, "a" * 64)
    for one in (first, second, first):
        save_digests(tmp_path, ROWS, one)
    for saved, read in zip((first, second), read_digests(tmp_path, ROWS), strict=True):
        assert (read.count, read.fingerprint) == (saved.count, saved.fingerprint)
        np.testing.assert_array_equal(read.exact, saved.exact)
        np.testing.assert_array_equal(read.normalised, saved.normalised)
    assert has_digests(tmp_path, ROWS, "a" * 64) and read_digests(tmp_path, RECORDS) == ()


@pytest.mark.parametrize(
    "path", [".", "checkpoints/step-00000008", "checkpoints/step-00000008/model.ckpt"]
)
def test_the_run_of_weights_is_found_from_any_path(tmp_path, monkeypatch, path):
    save_digests(tmp_path, ROWS, digests([5, 1], None, 2, "a" * 64))
    (tmp_path / "checkpoints" / "step-00000008").mkdir(parents=True)
    assert run_of_weights(tmp_path / path) == tmp_path
    monkeypatch.chdir(tmp_path / "checkpoints")
    assert run_of_weights(os.path.relpath(tmp_path / path)).resolve() == tmp_path.resolve()


@pytest.mark.parametrize("damage", [lambda data: data[:40], lambda data: b"", lambda data: b"x"])
def test_a_damaged_file_is_named(tmp_path, damage):
    save_digests(tmp_path, ROWS, digests([5, 1], None, 2, "a" * 64))
    (path,) = (tmp_path / "trained_on").iterdir()
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=f"{path.name}` is damaged.*Remove it, and repeat"):
        read_digests(tmp_path, ROWS)


@pytest.mark.parametrize(
    "trained, is_small, consequence",
    [
        (1, True, "fewer than 1 %, which changes their score little"),
        (9, True, "fewer than 1 %, which changes their score little"),
        (10, False, "their score is not a held-out score"),
        (999, False, "their score is not a held-out score"),
    ],
)
def test_a_few_rows_among_many_change_a_score_little(trained, is_small, consequence):
    overlap = Overlap(1000, trained, trained)
    assert overlap.is_small is is_small and overlap.consequence == consequence


def test_no_row_is_not_few_rows():
    assert not Overlap(1000, 0, 0).is_small


def test_a_full_disk_is_reported_once_and_with_the_name_of_the_file(monkeypatch, tmp_path):
    @contextlib.contextmanager
    def full_disk(path):
        yield Path("/dev/full")

    monkeypatch.setattr(trained_data, "whole_file", full_disk)
    one = digests(range(1, 10_001), None, 10_000, "a" * 64)
    with pytest.raises(OSError, match="No space left") as raised:
        save_digests(tmp_path, ROWS, one)
    del raised  # an archive that is left open is reported when it is collected
    gc.collect()
