"""Commands run in the process of a test, and print the same lines on a slow machine."""

import functools
import os

import pytest
import typer

from albert_keras.cli import log_lines

typer.main.get_command = functools.cache(typer.main.get_command)  # typer builds it for each call


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own(monkeypatch):
    """Restores TensorFlow's log level, which a command sets."""
    monkeypatch.setattr(log_lines, "FIRST_LINE", 1e9)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
