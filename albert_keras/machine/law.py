"""What a model is expected to learn: a law fitted to runs that were measured.

The law has the form of Hoffmann et al. 2022 (https://arxiv.org/abs/2203.15556), section 3.3, with
their exponents (equation 10):

    loss(N, D) = floor + a / N^0.34 + b / D^0.28

N is the weights of the blocks, shared ones counted at each depth: what sharing saves is memory, not
work, and a deeper model that shares learns more. D is the tokens seen in training; text that is
seen again counts less, as in Muennighoff et al. 2023 (https://arxiv.org/abs/2305.16264), section 5.
The three parameters, which are never negative, are fitted by least squares.
"""

import csv
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

#: Runs by the recipes for small models, on English novels (docs/measured.md).
MEASURED_RUNS = Path(__file__).parent / "measured_runs.csv"
_ALPHA, _BETA = 0.34, 0.28
#: Epochs after which a repeated token has lost most of its value (Muennighoff et al., R_D*).
_EPOCHS_OF_USE = 15.4
#: Updates of 4,096 positions before which a run has hardly left its first plateau, where the law
#: does not hold: with 30 % masks this takes 650 of 1,500. No measured run is
#: shorter.
LEAST_UPDATES = 1500
#: A run is extrapolated if it is larger or longer than the largest measured one by this factor.
_FAR = 2


class MeasuredRun(NamedTuple):
    """A run whose rate had decayed to 0 at its end, and its scores on held-out records."""

    name: str
    sharing: str  # "all" or "none"
    layers: float
    hidden_size: float
    tokens: float  # positions seen in training
    text_tokens: float  # positions of all training records of one copy of the text
    loss: float  # masked-LM loss in nats
    accuracy: float  # masked-LM accuracy, 0 to 1

    @property
    def weights(self) -> float:
        """float. N of the law."""
        return weights_at_all_depths(self.layers, self.hidden_size)


class Expectation(NamedTuple):
    """The expected score of a run on held-out text."""

    loss: float  # masked-LM loss in nats
    error: float  # standard error of the loss
    accuracy: float  # masked-LM accuracy of runs with this loss, 0 to 1
    is_extrapolated: bool  # more than twice as large or as long as all measured runs


class ScalingLaw(NamedTuple):
    """Expected masked-LM loss by weights and tokens."""

    parameters: tuple[float, float, float]  # floor, a and b
    deviation: float  # root mean square of the leave-one-out errors, in nats
    jackknife: tuple[tuple[float, float, float], ...]  # the parameters without each of the runs
    runs: tuple[MeasuredRun, ...]  # the runs that the law was fitted to

    def expect(self, weights: float, tokens: float, text_tokens: float = math.inf) -> Expectation:
        """Returns what a run is expected to reach; the arguments are as in `MeasuredRun`.

        The error combines the spread of the predictions without each of the measured runs with the
        error of predicting a run that was left out. Beyond twice the largest run, it grows by its
        own size with each further doubling.
        """
        terms = _terms(weights, useful_tokens(tokens, text_tokens))
        loss = float(np.dot(self.parameters, terms))
        without = np.dot(self.jackknife, terms)
        number = len(without)
        spread = (number - 1) / number * float(np.sum((without - without.mean()) ** 2))
        excess = max(
            weights / max(run.weights for run in self.runs),
            tokens / max(run.tokens for run in self.runs),
        )
        doublings = max(0.0, math.log2(excess / _FAR))
        error = math.sqrt(spread + self.deviation**2) * (1 + doublings)
        # The accuracy at this loss on the straight line through the measured runs.
        losses, accuracies = zip(*((run.loss, run.accuracy) for run in self.runs), strict=True)
        accuracy = np.polyval(np.polyfit(losses, accuracies, 1), loss)
        return Expectation(loss, error, float(np.clip(accuracy, 0, 1)), excess > _FAR)


def weights_at_all_depths(layers: float, hidden_size: float) -> float:
    """Returns the weights of blocks of which none is shared, with inner layers of 4·H."""
    return layers * (12 * hidden_size**2 + 13 * hidden_size)


def useful_tokens(tokens: float, text_tokens: float) -> float:
    """Returns how many tokens of new text teach as much as `tokens` of a text of `text_tokens`."""
    if tokens <= text_tokens:
        return tokens
    repetitions = tokens / text_tokens - 1
    return text_tokens * (1 + _EPOCHS_OF_USE * (1 - math.exp(-repetitions / _EPOCHS_OF_USE)))


@functools.cache
def measured_law() -> ScalingLaw:
    """Returns the law of the measured runs."""
    with open(MEASURED_RUNS, newline="", encoding="utf-8") as file:
        runs = [
            MeasuredRun(row["name"], row["sharing"], *map(float, [*row.values()][2:]))
            for row in csv.DictReader(file)
        ]
    return fit_law(runs)


def fit_law(runs: Sequence[MeasuredRun]) -> ScalingLaw:
    """Fits the law to at least four runs, of `LEAST_UPDATES` or more."""
    useful = [useful_tokens(run.tokens, run.text_tokens) for run in runs]
    terms = np.array([_terms(run.weights, one) for run, one in zip(runs, useful, strict=True)])
    losses = np.array([run.loss for run in runs])
    without, errors = [], []
    for left_out in range(len(runs)):
        kept = np.arange(len(runs)) != left_out
        without.append(_solve(terms[kept], losses[kept]))
        errors.append(np.dot(without[-1], terms[left_out]) - losses[left_out])
    deviation = float(np.sqrt(np.mean(np.square(errors))))
    return ScalingLaw(_solve(terms, losses), deviation, tuple(without), tuple(runs))


def _solve(terms, losses):
    """Returns the floor, a and b of the best fit, none of them negative."""
    from scipy.optimize import nnls

    scale = terms.max(axis=0)  # N^-alpha is a thousand times smaller than 1
    return tuple(float(value) for value in nnls(terms / scale, losses)[0] / scale)


def _terms(weights, tokens):
    return np.array([1.0, weights**-_ALPHA, tokens**-_BETA])
