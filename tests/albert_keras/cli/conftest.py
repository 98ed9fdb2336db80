"""Commands in the process of a test print the same lines on a slow machine."""

import pytest

from albert_keras.cli import log_lines


@pytest.fixture(autouse=True)
def _patient_start(monkeypatch):
    monkeypatch.setattr(log_lines, "LONGEST_START", 1e9)
