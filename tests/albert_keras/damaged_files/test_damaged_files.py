"""Files of every kind that the program reads, with flipped bits, cuts and hostile values, or pipes.

A damaged file must be read or be refused as the command line does, with exit code 2. In the slow
tests each kind has processes of its own, with limits of memory and time, so that an abort or an
endless loop of a library is a failure too.
"""

import contextlib
import io
import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest

from albert_keras.cli.output import report_error
from tests.albert_keras.damaged_files.damage import damaged
from tests.albert_keras.damaged_files.examples import KINDS, QUICK
from tests.benchmarks.measure import in_new_process

_MEMORY = 2 * 2**30
#: Seconds of computation of one case, and of waiting: a busy machine may be slow.
_SECONDS, _WAITING_SECONDS = 60, 600
#: Processes of a kind, as TensorFlow keeps a part of each model that it has loaded, and cases.
_PROCESSES, _CASES = 2, 60
#: Kinds with a third of the cases, as a graph is loaded for each.
_WITH_GRAPHS = ("export", "saved_model")


def read_damaged(kind, folder, cases, limit=lambda: None):
    """Reads the files of a kind with the damage of some cases, which are the seeds.

    `limit` is called before each case. RuntimeError names the case that did not end as it must.
    """
    files, read = KINDS[kind](Path(folder))
    read()
    for case in cases:
        rng = np.random.default_rng([case, len(kind)])
        path = files[rng.integers(len(files))]
        content = path.read_bytes()
        print(f"case {case}: {path}", flush=True)
        if case % 10 == 9:
            replace_by_endless_file(path, rng)
        else:
            path.write_bytes(damaged(content, rng))
        limit()
        try:
            read()
        except Exception as error:
            with contextlib.redirect_stderr(io.StringIO()) as output:
                code = report_error(error, debug=False)
            if code != 2:
                raise RuntimeError(f"case {case}, `{path}`: {output.getvalue()}") from error
        path.unlink()
        path.write_bytes(content)


def replace_by_endless_file(path, rng):
    """Replaces a file by a pipe in which nobody writes, or by a device."""
    path.unlink()
    if rng.integers(2):
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


def main(kind, folder, begin, end):
    """Reads damaged files in this process, which ends if a case takes too long."""

    def limit():
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        signal.alarm(_WAITING_SECONDS)

    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    read_damaged(kind, folder, range(begin, end), limit)


@pytest.mark.parametrize("kind", [one.__name__ for one in QUICK])
def test_some_damaged_files_are_read_or_refused(kind, tmp_path):
    read_damaged(kind, tmp_path, range(10_004, 10_010))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    cases = _CASES // 3 if kind in _WITH_GRAPHS else _CASES
    for begin in range(0, _PROCESSES * cases, cases):
        folder = tmp_path / str(begin)
        folder.mkdir()
        in_new_process(main, kind, folder, begin, begin + cases)
