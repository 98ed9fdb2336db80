"""Commands run in the process of a test."""

import functools
import os

import pytest
import typer

typer.main.get_command = functools.cache(typer.main.get_command)  # typer builds it for each call


@pytest.fixture(autouse=True)
def _as_in_a_process_of_its_own(monkeypatch):
    """Restores TensorFlow's log level, which a command sets."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
