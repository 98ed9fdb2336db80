"""Trainings of these tests are short."""

import pytest


@pytest.fixture(autouse=True)
def _short_trainings(without_curves):
    """Leaves out what takes longer than their steps."""
