"""Publishers, pollers and kills, in processes that may be forked: nothing here loads TensorFlow.

`run` starts a function of this file as a program of its own, which prints what it returns.
"""

import itertools
import json
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from albert_keras.serving.export.publishing import new_version
from albert_keras.serving.layout import keras_file, versions
from data_pipeline.errors import InputError
from tests.albert_keras.serving.goals.telling_version import look, write_version

ROOT = Path(__file__).parents[4]
_EVENTS = "open fcntl.flock os.listdir os.mkdir os.remove os.rename os.rmdir os.scandir".split()
_fork = multiprocessing.get_context("fork")


def run(race, out, **options):
    """Returns what a function of this file returns, called in a process of its own."""
    command = [sys.executable, "-m", __name__, race, str(out), json.dumps(options)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def publish(out, small_files=0, **options):
    """Publishes a version and returns its number."""
    with new_version(out, **options) as draft:
        write_version(draft, small_files)
    return draft.version


def against_poller(out, publishes, keep):
    """Publishes while another process lists the folder each millisecond and reads what is new.

    With `keep` it reads all that is listed, so that versions vanish while it reads.
    """
    out.mkdir()
    done, answers = _fork.Event(), _fork.Queue()
    poller = _fork.Process(target=_poll, args=(out, keep is not None, done, answers))
    poller.start()
    start = time.monotonic()
    for _ in range(publishes):
        publish(out, keep=keep)
    seconds = time.monotonic() - start
    done.set()
    seen = answers.get()
    poller.join()
    return {"publishes": publishes, **seen, "seconds": seconds, "left": sorted(os.listdir(out))}


def _poll(out, reads_all, done, answers):
    seen, polls, found = set(), 0, dict.fromkeys(("whole", "partial", "gone"), 0)
    is_last = False
    while not is_last:
        is_last = done.is_set()
        for name in os.listdir(out):
            if re.fullmatch(r"\d+", name) and (reads_all or name not in seen):
                seen.add(name)
                found[look(out, int(name))] += 1
        polls += 1
        time.sleep(0.001)
    answers.put({"polls": polls, "seen": len(seen), **found})


def kills(out, count, small_files):
    """Kills publishers at random moments; after each kill the next publisher does its work.

    A moment is up to 2 ms after a random step, so that it does not depend on how fast the disk is,
    and lies within a step as well as between two.
    """
    for _ in range(3):
        publish(out, small_files, keep=3)
    counter = _fork.Value("i", 0)
    _join(_fork.Process(target=_publish_in_steps, args=(out, small_files, 3, _count, counter)))
    steps, draw = counter.value, random.Random(7)
    told = {"steps": steps} | dict.fromkeys(("killed", "finished", "appeared", "removed"), 0)
    told |= dict.fromkeys(("writing", "synchronizing", "appearing", "later"), 0)
    while told["killed"] < count:
        newest, reached = versions(out)[-1], _fork.Semaphore(0)
        tell = (_tell_at, draw.randrange(steps), reached)
        publisher = _fork.Process(target=_publish_in_steps, args=(out, small_files, 3, *tell))
        publisher.start()
        reached.acquire()
        time.sleep(draw.uniform(0, 0.002))
        publisher.kill()
        if _join(publisher) == 0:
            told["finished"] += 1
            continue
        told["killed"] += 1
        told[_moment(out, newest + 1, small_files)] += 1
        told["appeared"] += versions(out)[-1] > newest
        told["removed"] += _check_after_kill(out, small_files)
    return told


def _moment(out, version, small_files):
    if (out / str(version)).exists():
        return "later"
    if keras_file(out / str(version)).exists():
        return "appearing"
    hidden = list(out.glob(f".{version}.tmp-*/assets/{small_files - 1}"))
    models = list(out.glob(f".{version}.tmp-*.keras"))
    return "synchronizing" if hidden and models else "writing"


def _check_after_kill(out, small_files=0, keep=3):
    """Publishes again and returns how many leftovers that removed."""
    for version in versions(out):
        assert look(out, version) == "whole", version
    left = {name for name in os.listdir(out) if name.startswith(".")}
    left |= {path.name for path in out.glob("*.keras") if not path.with_suffix("").exists()}
    number = publish(out, small_files, keep=keep)
    assert number == versions(out)[-1]
    kept = versions(out)
    assert len(kept) <= keep and all(look(out, version) == "whole" for version in kept)
    expected = {name for version in kept for name in (f"{version}", f"{version}.keras")}
    assert set(os.listdir(out)) == expected, (os.listdir(out), left)
    return len(left - expected)


def killed_at_each_step(out):
    """Kills a publisher just before the first thing it does to the disk, the second, and so on."""
    for _ in range(2):
        publish(out)
    removed = 0
    for step in itertools.count():
        die = (_die_at, step)
        if _join(_fork.Process(target=_publish_in_steps, args=(out, 0, 2, *die))) == 0:
            return {"steps": step, "removed": removed}
        removed += _check_after_kill(out, keep=2)


def _publish_in_steps(out, small_files, keep, at_step, *arguments):
    """Publishes and calls a function before each step that reads or changes the disk."""
    steps, is_done = itertools.count(), False

    def hook(event, _):
        if event in _EVENTS and not is_done:
            at_step(next(steps), *arguments)

    sys.addaudithook(hook)
    publish(out, small_files, keep=keep)
    is_done = True


def _count(step, counter):
    counter.value = step + 1


def _tell_at(step, wanted, reached):
    if step == wanted:
        reached.release()


def _die_at(step, wanted):
    if step == wanted:
        os.kill(os.getpid(), signal.SIGKILL)


def _join(process):
    """Returns the exit code: 0, or -9 if the process was killed."""
    if process.pid is None:
        process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode


def kills_among_the_living(out, count, processes):
    """Kills one after the other of some publishers; the others go on, and none may fail."""
    publish(out)
    draw, told = random.Random(7), {"killed": 0, "whole": 0, "partial": 0, "gone": 0}
    living = [_start_publishing(out) for _ in range(processes)]
    while told["killed"] < count:
        time.sleep(draw.uniform(0, 0.05))
        publisher = living.pop(draw.randrange(processes))
        publisher.kill()
        assert _join(publisher) == -signal.SIGKILL
        told["killed"] += 1
        living.append(_start_publishing(out))
        for version in versions(out):
            told[look(out, version)] += 1
    for publisher in living:
        publisher.kill()
        assert _join(publisher) == -signal.SIGKILL
    _check_after_kill(out, keep=5)
    return told | {"largest": versions(out)[-1]}


def _start_publishing(out):
    publisher = _fork.Process(target=lambda: [publish(out, keep=5) for _ in itertools.count()])
    publisher.start()
    return publisher


def at_once(out, processes, each):
    """Returns the numbers that processes got which publish at once, a list for each."""
    return _together(processes, _publish_often, out, each)


def _publish_often(barrier, out, each):
    barrier.wait()
    return [publish(out) for _ in range(each)]


def same_numbers(out, processes, each):
    """Lets processes publish the same numbers at once; returns who got which, and the refusals."""
    return _together(processes, _publish_same, out, each)


def _publish_same(barrier, out, each):
    got, refused = [], []
    for version in range(1, each + 1):
        barrier.wait()
        try:
            got.append(publish(out, version=version))
        except InputError as error:
            refused.append(str(error))
    return got, refused


def _together(processes, function, *arguments):
    barrier = _fork.Barrier(processes)
    with _fork.Pool(processes, _remember, (barrier,)) as pool:
        tasks = [pool.apply_async(_with_barrier, (function, *arguments)) for _ in range(processes)]
        return [task.get(600) for task in tasks]


def _remember(barrier):
    global _barrier
    _barrier = barrier


def _with_barrier(function, *arguments):
    return function(_barrier, *arguments)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]), **json.loads(sys.argv[3]))))
