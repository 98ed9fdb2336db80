"""Accuracies on minimal pairs, by group and overall, with 95 % intervals."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.minimal_pairs.pairs import MinimalPair
from albert_keras.tasks.metrics import Interval

_Z = 1.959964  # of the 95 % interval


class Accuracy(NamedTuple):
    """Accuracy on some pairs: right ones and half of the ties, divided by all pairs."""

    num_pairs: int
    num_ties: int  # pairs whose sentences have equal scores
    accuracy: float  # 0 to 1; 0.5 is chance
    interval: Interval  # see `wilson_interval`


class GroupAccuracy(NamedTuple):
    """Accuracy on the pairs of one group."""

    group: str
    field: str | None
    term: str | None
    num_pairs: int
    num_ties: int
    accuracy: float
    interval: Interval


class MeanAccuracy(NamedTuple):
    """Mean of the accuracies of several groups, each with the same weight."""

    name: str | None  # the field or term; None for all groups
    num_groups: int
    accuracy: float
    interval: Interval  # see `mean_of_groups`


def accuracy_of(differences: np.ndarray) -> Accuracy:
    """Returns the accuracy on pairs.

    Args:
        differences: float [N]. Score of the acceptable sentence minus score of the other one.
    """
    count, ties = len(differences), int(np.count_nonzero(differences == 0))
    points = int(np.count_nonzero(differences > 0)) + ties / 2
    return Accuracy(count, ties, points / count, wilson_interval(points, count))


def accuracy_by_group(pairs: Sequence[MinimalPair], differences: np.ndarray) -> list[GroupAccuracy]:
    """Returns the accuracy of each group, the lowest first."""
    rows: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        rows.setdefault(pair.group, []).append(number)
    found = []
    for group, numbers in rows.items():
        first = pairs[numbers[0]]
        found.append(
            GroupAccuracy(group, first.field, first.term, *accuracy_of(differences[numbers]))
        )
    return sorted(found, key=lambda one: (one.accuracy, one.group))


def means_by(groups: Sequence[GroupAccuracy], key: str) -> list[MeanAccuracy]:
    """Returns the mean over the groups of each `field` or `term`, the lowest first.

    Groups that have none are left out.
    """
    members: dict[str, list[GroupAccuracy]] = {}
    for group in groups:
        name = getattr(group, key)
        if name is not None:
            members.setdefault(name, []).append(group)
    found = [mean_of_groups(several, name) for name, several in members.items()]
    return sorted(found, key=lambda one: (one.accuracy, one.name))


def mean_of_groups(groups: Sequence[GroupAccuracy], name: str | None = None) -> MeanAccuracy:
    """Returns the mean accuracy of groups, which is how BLiMP summarises its paradigms.

    The interval covers the choice of the pairs within these groups, not the choice of the groups.
    It is computed from the intervals of the groups ("method of variance estimates recovery"), so
    that it has a width even if all answers are right; of one group it is the interval of the group.

    Source:
        Zou, Huang & Zhang (2009): A note on confidence interval estimation for a linear function of
        binomial proportions.
    """
    mean = sum(group.accuracy for group in groups) / len(groups)
    below = math.hypot(*(group.accuracy - group.interval.low for group in groups)) / len(groups)
    above = math.hypot(*(group.interval.high - group.accuracy for group in groups)) / len(groups)
    return MeanAccuracy(name, len(groups), mean, Interval(mean - below, mean + above))


def wilson_interval(points: float, count: int) -> Interval:
    """Returns the 95 % interval of a proportion `points / count`; a tie is half a point.

    Source:
        Wilson (1927): Probable inference, the law of succession, and statistical inference.
    """
    proportion, weight = points / count, _Z**2 / count
    middle = (proportion + weight / 2) / (1 + weight)
    reach = math.sqrt(weight * proportion * (1 - proportion) + weight**2 / 4) / (1 + weight)
    # The limits at 0 and 1 are exact, but for rounding.
    low = 0.0 if points == 0 else middle - reach
    return Interval(low, 1.0 if points == count else middle + reach)
