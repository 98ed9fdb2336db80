"""Wrong commands of every kind: one message without a traceback, exit code 2, nothing written.

The commands are in `wrong_commands.txt`, one in each line, with part of the expected message after
`=>`. They run in one process, in a folder with a run, records, exports and broken files.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.old_artifacts import unpack

_LINES = (Path(__file__).with_name("wrong_commands.txt")).read_text(encoding="utf-8").splitlines()
_COMMANDS = [(*line.split(" => "), "")[:3] for line in _LINES if line and not line.startswith("#")]
#: Those above the second comment are found before TensorFlow is imported.
_FAST = set(_COMMANDS[: _LINES.index("# The others.") - 2])
_MOST_LINES = 5

#: Files of JSON that are nested too deeply, in the folder `deep`.
_DEEP = ("dataset_info.json", "run/run.json", "tokenizer_config.json", "albert_config.json")

_PROGRAM = """
import contextlib, functools, io, json, os, shlex, sys
from pathlib import Path
import typer
from albert_keras.cli import main

typer.main.get_command = functools.cache(typer.main.get_command)  # typer builds it for each call

def names():
    return sorted(str(path) for path in Path().rglob("*"))

results = []
before = names()
for line in json.load(open(sys.argv[1])):
    sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                code = main(shlex.split(line))
            except BaseException as error:
                code = repr(error)
    has_tensorflow = "tensorflow" in sys.modules
    results.append((code, errors.getvalue(), sorted(set(names()) - set(before)), has_tensorflow))
    assert set(before) <= set(names()), line
json.dump(results, open(sys.argv[2], "w"))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Returns exit code, messages and new files, by command."""
    folder = unpack(tmp_path_factory.mktemp("wrong") / "work")
    (folder / "empty").mkdir()
    (folder / "one.txt").write_text("hello\n")
    (folder / "zero.txt").touch()
    (folder / "binary.bin").write_bytes(b"\0\1\2\xff\xfe")
    (folder / "bad.jsonl").write_text('{"a": 1\n')
    (folder / "tiny.csv").write_text("text,label\nx,1\n")
    (folder / "one-class.csv").write_text("text,label\nx,1\ny,1\nz,1\n")
    (folder / "bad-key.yaml").write_text("training: {stepz: 3}\n")
    (folder / "broken.yaml").write_text("training: [1\n")
    os.mkfifo(folder / "pipe")
    os.mkfifo(folder / "pipe.csv")
    (folder / "deep.yaml").write_text("a: " + "[" * 3000)
    for name in _DEEP:
        path = folder / "deep" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[" * 200_000)
    commands, found = folder.parent / "commands.json", folder.parent / "results.json"
    commands.write_text(json.dumps([command for command, _, _ in _COMMANDS]))
    subprocess.run([sys.executable, "-c", _PROGRAM, commands, found], cwd=folder, check=True)
    return dict(zip(_COMMANDS, json.loads(found.read_text()), strict=True))


@pytest.mark.parametrize("command, message, number", _COMMANDS)
def test_a_wrong_command_is_one_clear_message(results, command, message, number):
    code, errors, new_files, has_tensorflow = results[command, message, number]
    assert code == 2, errors
    assert "Traceback" not in errors and "internal error" not in errors
    assert message in " ".join(errors.split()), errors
    assert not new_files
    assert not has_tensorflow or (command, message, number) not in _FAST
    if number:
        shown = errors[errors.index("error: ") :].splitlines()
        assert shown[-1] == f"{number}: see docs/errors.md"
        # All problems of settings and rows are listed, on lines of their own.
        is_list = number in ("AK201", "AK202", "AK302", "AK407")
        counted = [line for line in shown if not (is_list and line.startswith("  "))]
        assert len(counted) <= _MOST_LINES
