"""Evaluates a model on minimal pairs: which of two sentences has the higher score."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.minimal_pairs.masked_sentences import encode_sentences
from albert_keras.minimal_pairs.pairs import MinimalPair, pair_files, read_pairs
from albert_keras.minimal_pairs.pseudo_likelihood import PseudoLikelihood, SentenceScores
from albert_keras.minimal_pairs.score_files import check_score_file, write_scores
from albert_keras.minimal_pairs.scores import (
    Accuracy,
    GroupAccuracy,
    MeanAccuracy,
    accuracy_by_group,
    accuracy_of,
    mean_of_groups,
    means_by,
)
from albert_keras.tasks.tables.rows import Problems
from albert_keras.training.loop.log_file import log_minimal_pairs
from data_pipeline.errors import InputError


class MinimalPairsEvaluation(NamedTuple):
    """Accuracies on minimal pairs. A pair is right if its acceptable sentence scores higher."""

    model: str
    step: int | None  # number of training steps, if it is known
    files: list[str]
    mask_rest_of_word: bool
    mean: MeanAccuracy  # over all groups, BLiMP's summary
    overall: Accuracy  # over all pairs
    num_same_tokens: int  # pairs whose sentences have the same tokens, which are always ties
    num_identical: int  # pairs among them whose sentences are identical
    num_unknown: int  # pairs with a token that is not in the vocabulary
    groups: list[GroupAccuracy]  # the lowest accuracy first
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

    The sums over the tokens are compared, as for BLiMP, not the means. The accuracies of a run are
    appended to its log.

    Args:
        model, mask_rest_of_word, step, batch_size, strategy: See `PseudoLikelihood`.
        files: File of JSON lines, see `pairs.py`; folder of such files; or a list of them.
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
        Warstadt et al. (2020), see `pairs.py`; Salazar et al. (2020), see `PseudoLikelihood`.
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
    _check_lengths(pairs, sentences, scorer)
    found = scorer.score(sentences)
    good, bad = found.scores.reshape(2, -1)
    groups = accuracy_by_group(pairs, good - bad)
    num_same_tokens, num_identical, num_unknown = _count(pairs, found, scorer.tokenizer.unk_id)
    evaluation = MinimalPairsEvaluation(
        model=str(model),
        step=scorer.step,
        files=[str(path) for path in paths],
        mask_rest_of_word=mask_rest_of_word,
        mean=mean_of_groups(groups),
        overall=accuracy_of(good - bad),
        num_same_tokens=num_same_tokens,
        num_identical=num_identical,
        num_unknown=num_unknown,
        groups=groups,
        fields=means_by(groups, "field"),
        terms=means_by(groups, "term"),
        out=None if target is None else str(target),
    )
    if target is not None:
        write_scores(target, pairs, found)
    if scorer.kind == "run":
        log_minimal_pairs(model, scorer.step, _log_entry(evaluation))
    return evaluation


def _check_lengths(pairs, sentences, scorer):
    """Raises InputError with file and line of sentences that have no score."""
    listings: dict[str, Problems] = {}
    for number, length in enumerate(sentences.lengths[sentences.rows]):
        problem = scorer.problem(int(length))
        if problem:
            pair = pairs[number % len(pairs)]
            side = "the acceptable" if number < len(pairs) else "the unacceptable"
            listing = listings.setdefault(pair.file, Problems(pair.file))
            listing.add(pair.line, f"{side} sentence {problem}")
    if listings:
        advice = "Remove these pairs: sentences are not truncated."
        raise InputError("\n".join(each.listing(advice) for each in listings.values()))


def _count(pairs: Sequence[MinimalPair], found: SentenceScores, unk_id: int):
    """Counts pairs with the same tokens, identical sentences, and unknown tokens."""
    sides = list(zip(found.ids[: len(pairs)], found.ids[len(pairs) :], strict=True))
    return (
        sum(np.array_equal(good, bad) for good, bad in sides),
        sum(pair.good == pair.bad for pair in pairs),
        sum(bool((good == unk_id).any() or (bad == unk_id).any()) for good, bad in sides),
    )


def _log_entry(evaluation):
    """Returns what the log of a run keeps of an evaluation: plain JSON."""
    return {
        "files": evaluation.files,
        "mask_rest_of_word": evaluation.mask_rest_of_word,
        "num_pairs": evaluation.overall.num_pairs,
        "num_ties": evaluation.overall.num_ties,
        "mean_accuracy": evaluation.mean.accuracy,
        "accuracy": evaluation.overall.accuracy,
        "groups": {one.group: one.accuracy for one in evaluation.groups},
    }
