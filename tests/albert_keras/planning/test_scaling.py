"""The law: it finds what runs were made from, and says how sure it is."""

import itertools
import math

import pytest

from albert_keras.planning.measured_runs import MeasuredRun, read_runs
from albert_keras.planning.scaling import HOFFMANN, fit_law, useful_tokens
from data_pipeline.errors import InputError

SIZES, TOKENS = (4e5, 3e6, 5e6), (7e6, 1e7, 1.6e7, 3.3e7)


def runs_of(exponents, number=12, noise=0.0):
    """Makes runs that follow a law with floor 2, on a text that is never repeated."""
    alpha, beta = exponents
    runs = []
    for order, (weights, tokens) in enumerate(itertools.product(SIZES, TOKENS)):
        loss = 2 + 90 / weights**alpha + 100 / tokens**beta + noise * (-1) ** order
        runs.append(
            MeasuredRun(f"{order}", "all", weights, tokens, math.inf, loss, 0.7 - 0.1 * loss)
        )
    return runs[:: len(runs) // number]


def test_few_runs_determine_three_parameters():
    law = fit_law(runs_of(HOFFMANN, number=6))
    assert (law.alpha, law.beta) == HOFFMANN
    assert (law.floor, law.a, law.b) == pytest.approx((2, 90, 100), rel=1e-6)
    found = law.expect(3e6, 8e6)
    assert found.loss == pytest.approx(2 + 90 / 3e6**0.34 + 100 / 8e6**0.28)
    assert found.error == pytest.approx(0, abs=1e-6) and not found.is_extrapolated
    assert found.accuracy == pytest.approx(0.7 - 0.1 * found.loss)


@pytest.mark.parametrize("exponents", [(0.5, 0.55), (0.2, 0.75)])
def test_enough_runs_determine_the_exponents(exponents):
    law = fit_law(runs_of(exponents))
    assert (law.alpha, law.beta) == exponents
    assert law.floor == pytest.approx(2, abs=1e-3)


def test_runs_that_are_still_on_the_plateau_are_not_fitted():
    runs = runs_of(HOFFMANN, number=6)
    plateau = [runs[0]._replace(tokens=tokens, loss=6.0) for tokens in (1e6, 2.4e6)]
    assert fit_law([*plateau, *runs]) == fit_law(runs)


def test_no_parameter_is_negative():
    runs = [run._replace(loss=5 + run.weights / 1e7) for run in runs_of(HOFFMANN, number=6)]
    law = fit_law(runs)
    assert min(law.floor, law.a, law.b) >= 0 and law.a == 0


def test_the_error_follows_the_scatter_of_the_runs():
    quiet, noisy = (fit_law(runs_of(HOFFMANN, noise=noise)) for noise in (0.01, 0.1))
    point = 3e6, 8e6
    assert 0.005 < quiet.expect(*point).error < noisy.expect(*point).error / 5
    assert abs(noisy.expect(*point).loss - fit_law(runs_of(HOFFMANN)).expect(*point).loss) < 0.1


def test_far_from_the_runs_the_error_grows_and_is_marked():
    law = fit_law(runs_of(HOFFMANN, noise=0.02))
    near = law.expect(5e6, 3.3e7)
    for weights, tokens in ((5e6, 3.3e8), (5e7, 3.3e7)):
        far = law.expect(weights, tokens)
        assert far.is_extrapolated and far.error > 3 * near.error and far.loss < near.loss
    assert not near.is_extrapolated and not law.expect(9e6, 6e7).is_extrapolated


def test_text_that_is_repeated_counts_less():
    assert useful_tokens(5e6, 1e7) == 5e6
    twice, often = useful_tokens(2e7, 1e7), useful_tokens(1e10, 1e7)
    assert 1.9e7 < twice < 2e7 and often == pytest.approx(16.4e7)
    law = fit_law(runs_of(HOFFMANN))
    assert law.expect(3e6, 3e7, 1e6).loss > law.expect(3e6, 3e7, 1e7).loss + 0.01


def test_too_few_runs_are_refused():
    with pytest.raises(
        InputError, match="at least 4 runs with 6,144,000 tokens or more, .* Received: 3."
    ):
        fit_law(runs_of(HOFFMANN)[:3])


def test_the_law_describes_the_measured_runs():
    law = fit_law(read_runs())
    for run in law.runs:
        found = law.expect(run.weights, run.tokens, run.text_tokens)
        assert abs(found.loss - run.loss) < 3 * found.error
        assert abs(found.accuracy - run.accuracy) < 0.04
    assert law.b > 0
