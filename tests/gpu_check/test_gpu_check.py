"""The check of a GPU, with a CPU in its place: what it compares, and how it says so."""

import pytest

from tests.gpu_check import __main__ as check


def test_without_a_gpu_nothing_is_checked(capsys):
    assert check.main() == 0
    assert "no GPU that TensorFlow can use" in capsys.readouterr().out


@pytest.mark.slow
def test_each_way_to_compile_and_each_precision_train_alike():
    rows = list(check.step_rows(("2x64", 4, 32)))
    assert [row.holds for row in rows] == [True] * 4


@pytest.mark.slow
def test_a_run_resumes_and_is_fine_tuned(tmp_path):
    resumed, fine_tuned = check.run_rows(tmp_path)
    assert resumed.found == "bit for bit" and fine_tuned.holds


@pytest.mark.slow
def test_updates_are_timed():
    assert check.fast_row(("2x64", 2, 32), 1.0).holds


def test_a_difference_beyond_its_bound_does_not_hold():
    assert check._difference("x", [1.0, 2.0], [1.0, 2.0], 1e-4).holds
    assert not check._difference("x", [1.0, 2.1], [1.0, 2.0], 1e-4).holds
    assert not check._difference("x", [1.0, float("nan")], [1.0, 2.0], 1e-4).holds
