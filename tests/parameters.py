"""Parameters of tests that are tried among the slow tests only."""

import pytest


def slow(*values):
    """Returns the values as parameters whose tests are marked slow."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]
