"""Finds examples that must not be scored, because the weights were trained on them."""

import logging
from collections.abc import Sequence

from albert_keras.formats.initial_weights import InitialWeights
from albert_keras.runs.run import Run
from albert_keras.runs.trained_data import (
    ROWS,
    Digests,
    Overlap,
    find_overlap,
    find_trained,
    has_digests,
    log_overlap,
    read_digests,
    run_of_weights,
)
from albert_keras.tasks.finetuned import is_converted
from albert_keras.tasks.results import FinetuneResult
from albert_keras.tasks.row_digests import digest_rows
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError, Mistake

logger = logging.getLogger(__name__)


def training_digests(
    examples: list, fingerprint: str, initial_weights: InitialWeights
) -> tuple[Digests, ...]:
    """Returns the digests of the training examples, then of the run of the initial weights.

    Initial weights from a run that was fine-tuned have been trained on its examples, too.
    """
    earlier = ()
    if initial_weights.kind != "random":
        earlier = read_digests(run_of_weights(initial_weights.path), ROWS)
    return (digest_rows(examples, fingerprint), *earlier)


def check_dev(
    dev: dict[str, list], trained: Sequence[Digests], config: TaskConfig, is_new: bool = True
) -> dict[str, Overlap]:
    """Compares development examples, by split, with the training examples; reports overlaps.

    Args:
        is_new: Whether the fine-tuning begins. Older versions allowed the same examples for both
            purposes: such a fine-tuning is resumed with a warning.

    Raises:
        InputError: If all examples of a split were trained on and the fine-tuning is new.
    """
    overlaps = {
        split: find_overlap(trained, digest_rows(examples)) for split, examples in dev.items()
    }
    for split, overlap in overlaps.items():
        source = f"`{config.dev}`" if config.dev else f"the split `{split}`"
        found = overlap.sentence(ROWS, f" of {source}")
        if overlap.is_total and is_new:
            remedy = "Give other development examples with `--dev`."
            if config.dev:
                remedy = (
                    "Remove them from one of the two files, give another `--dev`, or omit it: then "
                    "a part of the training examples is held out, or the official split is used."
                )
            raise InputError(
                "Development examples must not all be training examples: their score would be a "
                f"training score. Received: {found}. {remedy}",
                Mistake.DEV_IS_TRAIN,
            )
        if overlap.normalised:
            log_overlap(overlap, found)
    return overlaps


def check_scored(
    runs: Sequence[Run], examples: list, split: str, allow_trained_rows: bool
) -> tuple[Overlap | None, list[int], tuple[str, ...]]:
    """Compares examples to score with the training examples of runs, and reports what they share.

    Args:
        runs: Runs whose predictions are averaged.
        split: A split of the task, or the name of a file.
        allow_trained_rows: Whether all examples may have been trained on.

    Returns:
        tuple. The Overlap, or None if it is unknown for all runs; the numbers of the examples that
        were not trained on; and the runs for which it is unknown, because an older version trained
        them.

    Raises:
        InputError: If all examples were trained on and that is not allowed.
    """
    data, trained, unknown = digest_rows(examples), [], []
    for run in runs:
        if not has_digests(run.path, ROWS, run.record["data"]["fingerprint"]):
            unknown.append(str(run.path))
            reason = (
                "it was converted from another format. Give examples that were not used to train it"
                if is_converted(run)
                else "it was trained by a version that did not save their digests. Repeat its "
                "`finetune` command to save them"
            )
            logger.warning(
                "It is unknown whether `%s` was trained on some of these examples: %s.",
                run.path,
                reason,
            )
        trained += read_digests(run.path, ROWS)
    if len(unknown) == len(runs):
        return None, list(range(len(examples))), tuple(unknown)
    overlap = find_overlap(trained, data)
    found = overlap.sentence(ROWS, f" of `{split}`")
    if overlap.is_total and not allow_trained_rows:
        raise InputError(
            f"`{split}` must have rows that the model was not trained on. Received: {found}. Give "
            "other examples, or add `--allow-trained-rows` to compute the training score."
        )
    if overlap.normalised:
        log_overlap(overlap, found)
    unseen = (~find_trained(trained, data)).nonzero()[0].tolist()
    return overlap, unseen, tuple(unknown)


def overlap_warnings(result: FinetuneResult) -> list[str]:
    """Returns a line for each split of a result with 1 % or more examples that were trained on."""
    lines = []
    for split, fields in result.overlap.items():
        overlap = Overlap(**fields)
        if overlap.is_total:
            lines.append(f"{overlap.sentence(ROWS, f' of {split}')}: these are training scores")
        elif overlap.normalised and not overlap.is_small:
            lines.append(
                f"{overlap.sentence(ROWS, f' of {split}')}: these are not held-out scores. "
                "`albert-keras evaluate` also scores the other rows separately"
            )
    return lines
