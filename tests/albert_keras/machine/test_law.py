"""The law is fitted to runs and says how uncertain it is."""

import itertools
import math

import pytest

from albert_keras.machine.ladder import rung
from albert_keras.machine.law import (
    LEAST_UPDATES,
    MeasuredRun,
    fit_law,
    measured_law,
    useful_tokens,
)
from albert_keras.models.weight_count import count_weights

SHAPES, TOKENS = ((2, 128), (4, 256), (6, 256)), (6.2e6, 1.6e7, 3.3e7)


def runs_of(noise=0.0):
    """Returns runs that follow the law with a floor of 2, and alternate around it by the noise."""
    runs = []
    for order, (shape, tokens) in enumerate(itertools.product(SHAPES, TOKENS)):
        run = MeasuredRun(f"{order}", "all", *shape, tokens, math.inf, 0, 0)
        loss = 2 + 90 / run.weights**0.34 + 100 / tokens**0.28 + noise * (-1) ** order
        runs.append(run._replace(loss=loss, accuracy=0.7 - 0.1 * loss))
    return runs


def test_the_law_finds_the_parameters_of_runs_that_follow_it():
    law = fit_law(runs_of())
    assert law.parameters == pytest.approx((2, 90, 100), rel=1e-4)
    found = law.expect(5e6, 2e7)
    assert found.loss == pytest.approx(2 + 90 / 5e6**0.34 + 100 / 2e7**0.28, rel=1e-5)
    assert found.accuracy == pytest.approx(0.7 - 0.1 * found.loss, rel=1e-4)
    assert found.error < 1e-3 and not found.is_extrapolated


def test_far_from_the_runs_the_error_grows_and_is_marked():
    law = fit_law(runs_of(noise=0.02))
    near = law.expect(5e6, 3.3e7)
    for weights, tokens in ((5e6, 3.3e8), (5e7, 3.3e7)):
        far = law.expect(weights, tokens)
        assert far.is_extrapolated and far.error > 3 * near.error and far.loss < near.loss


def test_text_that_is_repeated_counts_less():
    assert useful_tokens(5e6, 1e7) == 5e6
    twice, often = useful_tokens(2e7, 1e7), useful_tokens(1e10, 1e7)
    assert 1.9e7 < twice < 2e7 and often == pytest.approx(16.4e7)


def test_the_law_describes_the_measured_runs():
    law = measured_law()
    for run in law.runs:
        assert run.tokens >= 4096 * LEAST_UPDATES
        config = rung(int(run.layers), int(run.hidden_size), 8000).replace(sharing="none")
        assert run.weights == count_weights(config).blocks
        found = law.expect(run.weights, run.tokens, run.text_tokens)
        assert abs(found.loss - run.loss) < 3 * found.error
        assert abs(found.accuracy - run.accuracy) < 0.04
