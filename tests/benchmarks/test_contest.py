"""How a contest is held: who runs when, what is counted, what happens to those that fail."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.benchmarks.contest import Contestant, Prepared, hold_contest


def prepare_sleeper(seconds, log=None):
    facts = {"runs": 0, "process": os.getpid()}
    if log:
        Path(log).open("a").write("prepared\n")

    def run():
        time.sleep(seconds)
        facts["runs"] += 1
        if log:
            with open(log, "a") as file:
                file.write(f"{seconds}\n")

    return Prepared(run, facts)


def prepare_nothing(reason):
    raise ValueError(f"{reason}\nmore about it")


def prepare_to_die():
    seen = []

    def run():
        seen.append(1)
        if len(seen) > 4:
            os.kill(os.getpid(), signal.SIGKILL)

    return Prepared(run, {})


def prepare_orphan(path):
    Path(path).write_text(str(os.getpid()))
    return Prepared(lambda: time.sleep(60), {})


def test_each_keeps_its_process_and_rounds_go_forwards_and_backwards(tmp_path):
    log = tmp_path / "log"
    contestants = [
        Contestant("a", "float32", prepare_sleeper, (0.001, log)),
        Contestant("b", "float32", prepare_sleeper, (0.002, log)),
    ]
    results = hold_contest(contestants, repeats=2, seconds=0)
    # First run and two warm-ups; then in each round one to wake up and one that counts.
    start, a, b = ["prepared"], ["0.001"], ["0.002"]
    order = start + 3 * a + start + 3 * b + 2 * a + 2 * b + 2 * b + 2 * a
    assert log.read_text().split() == order
    assert list(results) == ["a, float32", "b, float32"]
    processes = {result["facts"]["process"] for result in results.values()}
    assert len(processes | {os.getpid()}) == 3
    assert all(result["facts"]["runs"] == 7 for result in results.values())


def test_times_are_those_of_single_runs_and_rounds_their_means():
    contestant = Contestant("sleeper", "none", prepare_sleeper, (0.02,))
    (result,) = hold_contest([contestant], repeats=2, seconds=0.1).values()
    assert (result["name"], result["dtype"]) == ("sleeper", "none")
    assert 4 <= len(result["times"]) <= 12 and min(result["times"]) >= 0.02
    assert len(result["rounds"]) == 2
    assert sum(result["rounds"]) / 2 == pytest.approx(result["seconds"]["median"])
    assert min(result["times"]) <= result["seconds"]["low"] <= result["seconds"]["high"]
    assert result["start_seconds"] >= 0.02


def test_those_that_cannot_take_part_are_told_and_the_others_go_on():
    contestants = [
        Contestant("unable", "float32", prepare_nothing, ("too large",)),
        Contestant("dying", "float32", prepare_to_die),
        Contestant("absent", "float32", prepare_sleeper, (0,), ("no_such_package_here",)),
        Contestant("sound", "float32", prepare_sleeper, (0,)),
    ]
    unable, dying, absent, sound = hold_contest(contestants, repeats=2, seconds=0).values()
    assert unable == {"name": "unable", "dtype": "float32", "failed": "ValueError: too large"}
    assert dying["failed"] == "its process ended with signal 9: out of memory, or killed"
    assert absent["failed"] == "not installed: pip install albert-keras[bench]"
    assert "failed" not in sound and len(sound["rounds"]) == 2
    assert not multiprocessing.active_children()


def test_one_that_gives_no_answer_is_given_up(monkeypatch):
    monkeypatch.setattr("tests.benchmarks.contest._PATIENCE", 1)
    contestant = Contestant("stuck", "float32", prepare_sleeper, (60,))
    (result,) = hold_contest([contestant], repeats=1, seconds=0).values()
    assert result["failed"] == "it did not respond for 1 s"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
def test_no_process_outlives_the_one_that_holds_the_contest(tmp_path):
    path = tmp_path / "process"
    program = (
        "from tests.benchmarks.contest import Contestant, hold_contest\n"
        f"from {__name__} import prepare_orphan\n"
        f"hold_contest([Contestant('a', 'b', prepare_orphan, ({str(path)!r},))], 1, 1)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program])
    child = _wait_for(lambda: path.is_file() and path.read_text())
    parent.kill()
    parent.wait()
    assert _wait_for(lambda: not _runs(child))


def _runs(process):
    try:
        # Its third field is the state: Z has ended, and nobody has asked for its result yet.
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    return None
