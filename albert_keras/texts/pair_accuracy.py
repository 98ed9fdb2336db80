"""Evaluates a model on minimal pairs: which of two sentences has the higher score."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.answer_table import write_answer_table
from albert_keras.tasks.metrics import Interval
from albert_keras.texts.minimal_pairs import (
    MinimalPair,
    check_score_file,
    pair_files,
    read_pairs,
)
from albert_keras.texts.sentence_scores import PseudoLikelihood, encode_sentences
from data_pipeline.errors import InputError

_Z = 1.959964  # of the 95 % interval


class Accuracy(NamedTuple):
    """Accuracy on some pairs: right ones and half of the ties, divided by all pairs."""

    num_pairs: int
    num_ties: int  # pairs whose sentences have equal scores
    accuracy: float  # 0 to 1; 0.5 is chance
    interval: Interval  # see `wilson_interval`
    group: str | None = None  # None for all pairs
    field: str | None = None  # of the group
    term: str | None = None


class MeanAccuracy(NamedTuple):
    """Mean of the accuracies of several groups, each with the same weight."""

    name: str | None  # the field or term; None for all groups
    num_groups: int
    accuracy: float
    interval: Interval  # see `mean_of_groups`


class _PairScores(NamedTuple):
    good_score: float
    bad_score: float
    good_tokens: int
    bad_tokens: int
    result: str


class MinimalPairsEvaluation(NamedTuple):
    """Accuracies on minimal pairs. A pair is right if its acceptable sentence scores higher."""

    model: str
    step: int | None  # number of training steps, if it is known
    files: list[str]
    mask_rest_of_word: bool
    mean: MeanAccuracy  # over all groups, BLiMP's summary
    overall: Accuracy  # over all pairs
    groups: list[Accuracy]  # the lowest accuracy first
    fields: list[MeanAccuracy]  # mean of the groups of each field, if pairs have fields
    terms: list[MeanAccuracy]  # mean of the groups of each term, if pairs have terms
    out: str | None  # file of the scores of each pair


def evaluate_minimal_pairs(
    model: str | Path,
    files: str | Path | Sequence[str | Path],
    mask_rest_of_word: bool = False,
    step: int | str | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    batch_size: int = 64,
    strategy: str = "auto",
) -> MinimalPairsEvaluation:
    """Compares the pseudo-log-likelihoods of the two sentences of minimal pairs.

    The sums over the tokens are compared, as for BLiMP, not the means.

    Args:
        model, mask_rest_of_word, step, batch_size, strategy: See `PseudoLikelihood`.
        files: File of JSON lines, see `minimal_pairs.py`; folder of such files; or a list of them.
        out: File of JSON lines to write, with the scores of each pair. None writes none. It must
            not be in a folder of `files`.
        overwrite: Whether a file at `out` is replaced.

    Returns:
        MinimalPairsEvaluation.

    Raises:
        InputError: If the model or a pair cannot be used, or `out` exists. Sentences that are
            longer than the model can read are not truncated.

    Example:
        evaluate_minimal_pairs("runs/books", "blimp/").mean.accuracy  # 0.5 is chance

    Source:
        Warstadt et al. (2020), see `minimal_pairs.py`; Salazar et al. (2020), see
        `PseudoLikelihood`.
    """
    given = list(map(Path, [files] if isinstance(files, str | Path) else files))
    paths = pair_files(given)
    target = None if out is None else Path(out)
    if target is not None:
        check_score_file(target, overwrite, [*given, *paths])
    pairs = read_pairs(paths)
    scorer = PseudoLikelihood(model, mask_rest_of_word, step, batch_size, strategy)
    texts = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    sentences = encode_sentences(texts, scorer.tokenizer)
    for number, length in enumerate(sentences.lengths[sentences.rows]):
        if problem := scorer.problem(int(length)):
            pair = pairs[number % len(pairs)]
            raise InputError(
                f"`{pair.file}` line {pair.line}: a sentence {problem} Remove the pair: sentences "
                "are not truncated."
            )
    found = scorer.score(sentences)
    good, bad = found.scores.reshape(2, -1)
    groups = accuracy_by_group(pairs, good - bad)
    if target is not None:
        _write_scores(target, pairs, found)
    return MinimalPairsEvaluation(
        model=str(model),
        step=scorer.step,
        files=[str(path) for path in paths],
        mask_rest_of_word=mask_rest_of_word,
        mean=mean_of_groups(groups),
        overall=accuracy_of(good - bad),
        groups=groups,
        fields=means_by(groups, "field"),
        terms=means_by(groups, "term"),
        out=None if target is None else str(target),
    )


def accuracy_of(differences: np.ndarray, *group: str | None) -> Accuracy:
    """Returns the accuracy on pairs, all of them or those of a group.

    Args:
        differences: float [N]. Score of the acceptable sentence minus score of the other one.
        *group: Name, field and term of the group.
    """
    count, ties = len(differences), int(np.count_nonzero(differences == 0))
    points = int(np.count_nonzero(differences > 0)) + ties / 2
    return Accuracy(count, ties, points / count, wilson_interval(points, count), *group)


def accuracy_by_group(pairs: Sequence[MinimalPair], differences: np.ndarray) -> list[Accuracy]:
    """Returns the accuracy of each group, the lowest first."""
    rows: dict[str, list[int]] = {}
    for number, pair in enumerate(pairs):
        rows.setdefault(pair.group, []).append(number)
    found = []
    for group, numbers in rows.items():
        first = pairs[numbers[0]]
        found.append(accuracy_of(differences[numbers], group, first.field, first.term))
    return sorted(found, key=lambda one: (one.accuracy, one.group))


def means_by(groups: Sequence[Accuracy], key: str) -> list[MeanAccuracy]:
    """Returns the mean over the groups of each `field` or `term`, the lowest first.

    Groups that have none are left out.
    """
    members: dict[str, list[Accuracy]] = {}
    for group in groups:
        name = getattr(group, key)
        if name is not None:
            members.setdefault(name, []).append(group)
    found = [mean_of_groups(several, name) for name, several in members.items()]
    return sorted(found, key=lambda one: (one.accuracy, one.name))


def mean_of_groups(groups: Sequence[Accuracy], name: str | None = None) -> MeanAccuracy:
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


def _write_scores(path, pairs, found):
    """Writes a line for each of N pairs: where it is, its sentences, their scores and the result.

    `found` has the scores of the N acceptable sentences, then of the N others.
    """
    names, count, scores = ("file", "line", "group", "good", "bad"), len(pairs), []
    for number in range(count):
        good, bad = found.scores[[number, count + number]].tolist()
        tokens = len(found.ids[number]), len(found.ids[count + number])
        result = "tie" if good == bad else "right" if good > bad else "wrong"
        scores.append(_PairScores(good, bad, *tokens, result))
    write_answer_table(
        path, [{name: getattr(pair, name) for name in names} for pair in pairs], scores
    )
