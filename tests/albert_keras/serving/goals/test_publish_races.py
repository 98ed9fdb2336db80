"""B-2: no server ever sees a part of a version. `pytest -m slow -s` prints the figures."""

import pytest

from albert_keras.serving.layout import versions
from tests.albert_keras.serving.goals import races
from tests.albert_keras.serving.goals.telling_version import look

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("keep", [None, 3])
def test_a_thousand_versions_are_whole_whenever_a_poller_looks(tmp_path, keep):
    told = races.run("against_poller", tmp_path / "books", publishes=1000, keep=keep)
    left = told.pop("left")
    print(f"\npublishes against a 1 ms poller, keep={keep}: {told}")
    numbers = range(1, 1001) if keep is None else range(998, 1001)
    assert left == sorted(name for number in numbers for name in (f"{number}", f"{number}.keras"))
    assert told["partial"] == 0
    if keep is None:
        assert told["seen"] == told["whole"] == 1000
    else:  # versions come and go between two looks
        assert told["seen"] > 500 and told["whole"] > 1000


def test_fifty_killed_publishers_leave_nothing_behind(tmp_path):
    told = races.run("kills", tmp_path / "books", count=50, small_files=100)
    print(f"\npublishers killed at random moments: {told}")
    assert told["killed"] == 50 and told["removed"] > 50
    assert min(told["writing"], told["synchronizing"], told["later"]) > 0


def test_a_publisher_killed_before_each_step_leaves_nothing_behind(tmp_path):
    told = races.run("killed_at_each_step", tmp_path / "books")
    print(f"\npublishers killed before each system call that changes the disk: {told}")
    assert told["steps"] > 30


def test_the_living_lose_nothing_while_others_are_killed(tmp_path):
    told = races.run("kills_among_the_living", tmp_path / "books", count=200, processes=4)
    print(f"\npublishers killed while others publish: {told}")
    assert told["killed"] == 200 and told["partial"] == 0
    assert told["whole"] > 200 and told["largest"] > 100


def test_eight_processes_publish_twenty_versions_each(tmp_path):
    numbers = sum(races.run("at_once", tmp_path, processes=8, each=20), [])
    whole = [look(tmp_path, version) for version in numbers].count("whole")
    different = len(set(numbers))
    print(f"\n8 publishers at once: {len(numbers)} versions, {different} numbers, {whole} whole")
    assert sorted(numbers) == versions(tmp_path)
    assert len(set(numbers)) == len(numbers) == whole == 160


def test_of_eight_processes_one_gets_each_number(tmp_path):
    answers = races.run("same_numbers", tmp_path, processes=8, each=20)
    got = sorted(sum((got for got, _ in answers), []))
    refusals = sum(len(refused) for _, refused in answers)
    print(f"\npublishers of the same number at once: 8, published: {len(got)}, refused: {refusals}")
    assert got == list(range(1, 21)) and refusals == 140
