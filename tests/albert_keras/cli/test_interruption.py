"""Ctrl-C ends a command with one line on how to go on."""

import signal
import subprocess
import sys

import pytest

from albert_keras.cli.interruption import command_line

_PROGRAM = """
import hashlib, sys, time
from pathlib import Path
from albert_keras.cli import app, main
from albert_keras.cli.command import command
from albert_keras.cli.interruption import ending_at_once
from data_pipeline.files import whole_file

@command()
def work():
    '''Waits.'''
    with whole_file(Path("result")) as temporary:
        temporary.write_text("half of it")
        print("running", flush=True)
        time.sleep(60)

@command()
def compute():
    '''Computes outside of Python.'''
    with ending_at_once():
        print("running", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)

app.command("work")(work)
app.command("compute")(compute)
sys.exit(main())
"""


@pytest.mark.parametrize("name, code", [("work", 130), ("compute", -signal.SIGINT)])
def test_ctrl_c_ends_a_command(tmp_path, name, code):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", _PROGRAM, name]
    with subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        try:
            assert process.stdout.readline() == "running\n"
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == code
    assert not list(tmp_path.iterdir())
    if name == "work":
        saved = "Repeat the command to resume the work that it saved, or to start again"
        assert errors.strip() == f"Interrupted. {saved}:\n  -c work"


@pytest.mark.parametrize(
    "program, shown",
    [
        ("/usr/bin/albert-keras", "albert-keras vocab --out 'a b'"),
        ("/x/albert_keras/__main__.py", "python -m albert_keras vocab --out 'a b'"),
    ],
)
def test_the_command_can_be_pasted(monkeypatch, program, shown):
    monkeypatch.setattr(sys, "argv", [program, "vocab", "--out", "a b"])
    assert command_line() == shown
