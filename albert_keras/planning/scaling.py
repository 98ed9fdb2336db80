"""What a model is expected to learn: a law fitted to runs that were measured.

The law has the form of Hoffmann et al. 2022 (https://arxiv.org/abs/2203.15556), section 3.3:

    loss(N, D) = floor + a / N^alpha + b / D^beta

with N the weights of the blocks and D the tokens seen in training. Text that is seen again counts
less, as in Muennighoff et al. 2023 (https://arxiv.org/abs/2305.16264), section 5.

About ten runs do not determine five parameters. The exponents are therefore taken from a short
list, and the three other parameters, which are never negative, are fitted by least squares.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.planning.ladder import CPU_POSITIONS
from albert_keras.planning.measured_runs import MeasuredRun
from data_pipeline.errors import InputError

#: Exponents (alpha, beta) of Hoffmann et al., equation 10.
HOFFMANN = (0.34, 0.28)
#: Exponents that are tried if there are enough runs to choose between them.
_ALPHAS, _BETAS = (0.2, 0.34, 0.5), (0.28, 0.4, 0.55, 0.75)
_RUNS_TO_CHOOSE_EXPONENTS = 8
#: Epochs after which a repeated token has lost most of its value (Muennighoff et al., R_D*).
_EPOCHS_OF_USE = 15.4
#: Updates before which a run has hardly left its first plateau, where the law does not hold: with
#: 30 % masks this takes 650 of 1,500 (docs/search.md). Shorter runs are not fitted.
LEAST_UPDATES = 1500
LEAST_TOKENS = LEAST_UPDATES * CPU_POSITIONS
#: A run is extrapolated if it is larger or longer than the largest measured one by this factor.
_FAR = 2


class Expectation(NamedTuple):
    """The expected score of a run on held-out text."""

    loss: float  # masked-LM loss in nats
    error: float  # standard error of the loss
    accuracy: float  # masked-LM accuracy of runs with this loss, 0 to 1
    is_extrapolated: bool  # more than twice as large or as long as all measured runs


class ScalingLaw(NamedTuple):
    """Expected masked-LM loss by weights and tokens."""

    floor: float
    a: float
    b: float
    alpha: float
    beta: float
    deviation: float  # root mean square of the leave-one-out errors, in nats
    jackknife: tuple[tuple[float, float, float], ...]  # floor, a and b without each of the runs
    runs: tuple[MeasuredRun, ...]  # the runs that the law was fitted to

    def expect(self, weights: float, tokens: float, text_tokens: float = math.inf) -> Expectation:
        """Returns what a run is expected to reach; the arguments are as in `MeasuredRun`.

        The error combines the spread of the predictions without each of the measured runs with the
        error of predicting a run that was left out. Beyond twice the largest run, it grows by its
        own size with each further doubling.
        """
        terms = _terms(weights, useful_tokens(tokens, text_tokens), self.alpha, self.beta)
        loss = float(np.dot((self.floor, self.a, self.b), terms))
        without = np.dot(self.jackknife, terms)
        number = len(without)
        spread = (number - 1) / number * float(np.sum((without - without.mean()) ** 2))
        excess = max(
            weights / max(run.weights for run in self.runs),
            tokens / max(run.tokens for run in self.runs),
        )
        doublings = max(0.0, math.log2(excess / _FAR))
        error = math.sqrt(spread + self.deviation**2) * (1 + doublings)
        return Expectation(loss, error, self._accuracy(loss), excess > _FAR)

    def _accuracy(self, loss):
        """Returns the accuracy at a loss on the straight line through the measured runs."""
        slope, start = np.polyfit(
            [run.loss for run in self.runs], [run.accuracy for run in self.runs], 1
        )
        return float(np.clip(start + slope * loss, 0, 1))


def useful_tokens(tokens: float, text_tokens: float) -> float:
    """Returns how many tokens of new text teach as much as `tokens` of a text of `text_tokens`."""
    if tokens <= text_tokens:
        return tokens
    repetitions = tokens / text_tokens - 1
    return text_tokens * (1 + _EPOCHS_OF_USE * (1 - math.exp(-repetitions / _EPOCHS_OF_USE)))


def fit_law(runs: Sequence[MeasuredRun]) -> ScalingLaw:
    """Fits the law to runs of at least `LEAST_TOKENS`.

    With at least eight runs, the exponents are chosen that best predict runs that were left out.
    With fewer, the exponents of Hoffmann et al. are used.

    Raises:
        InputError: If there are fewer than four such runs.
    """
    runs = [run for run in runs if run.tokens >= LEAST_TOKENS]
    shared = [run for run in runs if run.sharing == "all"]
    runs = shared if len(shared) >= 4 else runs
    if len(runs) < 4:
        raise InputError(
            f"`runs` must contain at least 4 runs with {LEAST_TOKENS:,} tokens or more, to fit 3 "
            f"parameters. Received: {len(runs)}."
        )
    exponents = [HOFFMANN]
    if len(runs) >= _RUNS_TO_CHOOSE_EXPONENTS:
        exponents = list(itertools.product(_ALPHAS, _BETAS))
    return min((_fit(runs, *pair) for pair in exponents), key=lambda law: law.deviation)


def _fit(runs, alpha, beta):
    terms = np.array(
        [
            _terms(run.weights, useful_tokens(run.tokens, run.text_tokens), alpha, beta)
            for run in runs
        ]
    )
    losses = np.array([run.loss for run in runs])
    without, errors = [], []
    for left_out in range(len(runs)):
        kept = np.arange(len(runs)) != left_out
        without.append(_solve(terms[kept], losses[kept]))
        errors.append(np.dot(without[-1], terms[left_out]) - losses[left_out])
    deviation = float(np.sqrt(np.mean(np.square(errors))))
    return ScalingLaw(*_solve(terms, losses), alpha, beta, deviation, tuple(without), tuple(runs))


def _solve(terms, losses):
    """Returns the floor, a and b of the best fit, none of them negative."""
    from scipy.optimize import nnls

    scale = terms.max(axis=0)  # N^-alpha is a thousand times smaller than 1
    return tuple(float(value) for value in nnls(terms / scale, losses)[0] / scale)


def _terms(weights, tokens, alpha, beta):
    return np.array([1.0, weights**-alpha, tokens**-beta])
