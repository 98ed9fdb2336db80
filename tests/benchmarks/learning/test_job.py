"""The clock counts training only, and the points are at its marks."""

import pytest

from tests.benchmarks.learning.job import MARKS, Job, Recorder, read_points


class Clock:
    def __init__(self):
        self.seconds = 100.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def job(tmp_path):
    return Job(30.0, 1, 2, "float32", "", str(tmp_path / "points.jsonl"), {})


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def recorder(job, clock):
    def score():
        clock.seconds += 1000
        return 5.0, 0.25

    return Recorder(job, score, positions_per_update=64, now=clock)


def advance(recorder, clock, *durations):
    for seconds in durations:
        clock.seconds += seconds
        recorder.add_updates()


def test_points_are_at_the_marks_and_scoring_does_not_count(job, recorder, clock):
    assert recorder.seconds() == 0
    recorder.start()
    advance(recorder, clock, *[0.75] * 40)
    assert recorder.seconds() == 30
    recorder.end({"weights": 7})
    points, facts = read_points(job.points)
    assert [point["seconds"] for point in points] == [
        0.75, 1.5, 2.25, 3, 5.25, 7.5, 10.5, 15, 20.25, 25.5, 30
    ]  # fmt: skip
    assert len(points) == len(MARKS)
    assert points[1] == {
        "seconds": 1.5, "updates": 2, "positions": 128, "loss": 5.0, "accuracy": 0.25
    }  # fmt: skip
    assert facts["weights"] == 7 and facts["first_update_seconds"] == 0.75


def test_the_first_update_counts_and_may_pass_several_marks(job, recorder, clock):
    recorder.start()
    advance(recorder, clock, 4.0, 2.0)
    assert recorder.first_update == 4
    assert [point["seconds"] for point in read_points(job.points)[0]] == [4.0, 6.0]


def test_another_update_must_end_within_the_time(recorder, clock):
    recorder.start()
    advance(recorder, clock, 20.0)
    assert not recorder.is_over  # the next one does not compile again
    advance(recorder, clock, 4.0)
    assert not recorder.is_over  # the next one ends after 28 s
    advance(recorder, clock, 4.0)
    assert recorder.is_over


def test_the_last_update_is_scored_once(job, recorder, clock):
    recorder.start()
    advance(recorder, clock, 25.0, 1.0)
    clock.seconds += 5  # saving the result
    recorder.end({})
    points, _ = read_points(job.points)
    assert [(point["updates"], point["seconds"]) for point in points] == [(1, 25), (2, 26)]


def test_an_interrupted_training_keeps_its_points_but_is_not_complete(job, recorder, clock):
    recorder.start()
    advance(recorder, clock, 1.0)
    with open(job.points, "a") as file:
        file.write('{"seconds": 3')
    points, facts = read_points(job.points)
    assert len(points) == 1 and facts is None
    assert read_points(job.points + "-missing") == ([], None)


def test_the_rate_rises_and_falls_by_the_time_after_the_first_update(recorder, clock):
    recorder.start()
    assert recorder.rate_factor() == 1e-3
    advance(recorder, clock, 10.0)  # 20 s remain
    clock.seconds += 0.06 * 20 / 2
    assert recorder.rate_factor() == pytest.approx(0.5)
    clock.seconds += 0.06 * 20 / 2
    assert recorder.rate_factor() == pytest.approx(1)
    clock.seconds += 0.94 * 20 / 4
    assert recorder.rate_factor() == pytest.approx(0.75)
    clock.seconds = 100 + 1000 + 30  # the first update was scored
    assert recorder.rate_factor() == pytest.approx(1e-3)
