"""`.ci/run` runs all tests, those of the newer TensorFlow if there is a Python for it."""

import os
import shutil
import subprocess

import pytest

from tests.repository import ROOT, needs_repository

pytestmark = needs_repository

SLOW = ["test-slow", "test-newer-slow"]
PARTS = ["lint", "test", "test-beam", "test-both", "release-check", *SLOW]
LIMIT = 4680  # seconds


@pytest.fixture
def run_ci(tmp_path):
    """Returns a function that runs `.ci/run` where only certain programs exist, after seconds."""
    for name in ("bash", "dirname", "mktemp", "rm", "timeout"):
        (tmp_path / name).symlink_to(shutil.which(name))

    def run(seconds=0, **programs):
        programs.setdefault("make", 'echo "make $*"')
        for name, code in programs.items():
            program = tmp_path / name.replace("_", ".")
            program.write_text(f"#!{tmp_path}/bash\n{code}\n")
            program.chmod(0o755)
        done = subprocess.run(
            [tmp_path / "bash", ROOT / ".ci" / "run"],
            env={"PATH": str(tmp_path), "SECONDS": str(seconds), "TMPDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert not list(tmp_path.glob("tmp.*"))
        return done.returncode, done.stdout.replace(f"{tmp_path}{os.sep}", "").splitlines()

    return run


def test_every_part_runs_and_says_how_long_it_took(run_ci):
    code, lines = run_ci(python3_12="exit 0")
    assert code == 0 and [line.split()[1] for line in lines[::2]] == PARTS
    assert [line.split()[2].rstrip(":") for line in lines[1::2]] == PARTS
    assert all(" VENV=tmp." in line and "PYTHON_NEWER=python3.12" in line for line in lines[::2])


@pytest.mark.parametrize(
    "programs, reason",
    [
        ({}, "no Python 3.13 or 3.12 here"),
        ({"python3_13": '[ "$2" != pip ]'}, "no packages for python3.13 can be fetched"),
    ],
)
def test_one_line_says_why_the_newer_line_is_not_tested(run_ci, programs, reason):
    code, (*_, line, released, _, slow, _) = run_ci(**programs)
    assert code == 0 and reason in line and "nothing was tested with TensorFlow 2.21" in line
    assert "make release-check ARGS=--quick --pythons 3.11 3.10 VENV=" in released
    assert "make test-slow VENV=" in slow


@pytest.mark.parametrize("failing", PARTS)
def test_a_failure_of_one_part_is_one_of_all(run_ci, failing):
    code, _ = run_ci(make=f'[ "$1" != {failing} ]', python3_13="exit 0")
    assert code != 0


@pytest.mark.parametrize("long", SLOW)
def test_slow_tests_run_while_there_is_time(run_ci, long):
    make = f'if [ "$1" = {long} ]; then exec {shutil.which("sleep")} 60; fi'
    code, lines = run_ci(LIMIT - 5, make=make, python3_13="exit 0")
    assert code == 0 and f"make {long}: the time is over" in lines[-1]
    assert len(lines) == len(PARTS[: PARTS.index(long)]) + 1


def test_other_parts_must_end_in_time(run_ci):
    make = f'if [ "$1" = test ]; then exec {shutil.which("sleep")} 60; fi'
    assert run_ci(LIMIT - 3, make=make)[0] != 0
