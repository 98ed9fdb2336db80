"""No process that the packages start executes a file of the current folder."""

import multiprocessing
import operator
import subprocess
import sys
from pathlib import Path

import pytest

import albert_keras
import data_pipeline
from data_pipeline.building.workers import Workers
from data_pipeline.child_processes import environment, isolated_spawning, module_command

#: What a new Python process, `multiprocessing`, our programs and their libraries import.
_MODULES = ("typing", "json", "signal", "importlib", "sentencepiece", "numpy", "sitecustomize")
_PACKAGES = ("albert_keras", "data_pipeline")


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """Makes a folder of modules that create a file the current one; returns that file."""
    mark, folder = tmp_path / "mark", tmp_path / "folder"
    code = f"open({str(mark)!r}, 'a').write(__name__)\nraise SystemExit(3)\n"
    for package in _PACKAGES:
        (folder / package).mkdir(parents=True)
        (folder / package / "__init__.py").write_text(code)
    for module in _MODULES:
        (folder / f"{module}.py").write_text(code)
    monkeypatch.chdir(folder)
    return mark


def run(module, *arguments, **variables):
    command = module_command(module, *arguments)
    done = subprocess.run(command, env=environment(**variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_trap_works(mark):
    for arguments in (["-m", "albert_keras"], ["-c", "import typing"]):
        mark.unlink(missing_ok=True)
        subprocess.run([sys.executable, *arguments], check=False)
        assert mark.exists()


def program(folder, name="shown"):
    """Writes a program that shows its arguments and where it found a module."""
    (folder / f"{name}.py").write_text(
        "import sys, typing, json\n"
        "from importlib.util import find_spec\n"
        "print(*sys.argv[1:], *(find_spec(name).origin for name in sys.argv[1:]))\n"
    )
    return name


@pytest.mark.parametrize("python_path", [None, ":{here}/."])
def test_a_module_runs_with_our_packages_and_without_those_of_the_current_folder(
    mark, tmp_path, monkeypatch, python_path
):
    name = program(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # found because this process finds it
    monkeypatch.setattr(sys, "path", ["", str(Path.cwd()), *sys.path])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if python_path is not None:
        monkeypatch.setenv("PYTHONPATH", python_path.format(here=Path.cwd()))
    origins = [package.__file__ for package in (albert_keras, data_pipeline)]
    assert run(name, *_PACKAGES) == [*_PACKAGES, *origins]
    assert not mark.exists()


def test_workers_start_isolated(mark):
    with Workers(2, print, ()) as workers:
        assert list(workers.run(operator.is_, [None])) == [True]
    with isolated_spawning():
        process = multiprocessing.get_context("spawn").Process(target=abs, args=(1,))
        process.start()
    process.join()
    assert process.exitcode == 0
    assert not mark.exists()
