"""Long work reports its progress; short work is silent."""

import logging
from types import SimpleNamespace

import pytest

from data_pipeline import progress
from data_pipeline.progress import CountedProgress

logger = logging.getLogger("albert_keras.test")


@pytest.fixture
def clock(monkeypatch, caplog):
    """Returns a list with the time, in seconds, that can be changed."""
    caplog.set_level("INFO")
    now = [0.0]
    # Only the clock of this module: a server in another thread of the tests uses the real one.
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_lines_have_a_count_and_the_time_that_is_left(clock, caplog):
    counted = CountedProgress(logger, "evaluating", 6000, "records")
    for seconds in range(1, 11):
        clock[0] = seconds
        counted.add(300)
    assert caplog.messages == [
        "evaluating: 1,500 of 6,000 records, ETA 15 s",
        "evaluating: 3,000 of 6,000 records, ETA 10 s",
    ]


def test_the_time_left_follows_the_work_not_the_count(clock, caplog):
    counted = CountedProgress(logger, "computing", 100, "rows", total_work=1000)
    clock[0] = 5
    counted.add(50, work=100)
    assert caplog.messages == ["computing: 50 of 100 rows, ETA 45 s"]


def test_short_work_logs_nothing(clock, caplog):
    counted = CountedProgress(logger, "evaluating", 2, "records")
    clock[0] = 3.9
    counted.add()
    clock[0] = 60
    counted.add()
    assert not caplog.messages
