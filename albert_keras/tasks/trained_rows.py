"""Finds examples that must not be scored, because the weights were trained on them.

A row is what the model reads: neither its label nor its id or number makes a difference. For
questions, of SQuAD and RACE, it is question and passage; options and answers are no part of it.
"""

import hashlib
import json
import logging
from collections.abc import Sequence

import numpy as np

from albert_keras.runs.run import Run
from albert_keras.runs.trained_data import (
    ROWS,
    Digests,
    Overlap,
    check_overlap,
    find_overlap,
    has_digests,
    read_digests,
)
from albert_keras.tasks.examples import normalised, row_of
from albert_keras.tasks.finetuned import is_converted
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import Mistake

logger = logging.getLogger(__name__)


def digest_rows(examples: list, fingerprint: str = "") -> Digests:
    """Digests the rows of examples with their texts normalised, see `normalised`."""
    rows = (list(map(normalised, row_of(example))) for example in examples)
    # In JSON, two texts differ from one with their content.
    digests = (hashlib.sha256(json.dumps(row).encode()).digest() for row in rows)
    numbers = (int.from_bytes(digest[:8], "big") for digest in digests)
    return Digests(np.fromiter(numbers, np.uint64, len(examples)), len(examples), fingerprint)


def check_dev(
    dev: dict[str, list], trained: Sequence[Digests], config: TaskConfig, is_new: bool = True
) -> dict[str, Overlap]:
    """Compares development examples, by split, with the training examples; reports overlaps.

    `is_new` is whether the fine-tuning begins. Older versions allowed the same examples for both
    purposes: such a fine-tuning is resumed with a warning.

    Raises:
        InputError: If all examples of a split were trained on and the fine-tuning is new.
    """
    rule = (
        "Development examples must not all be training examples: their score would be a training "
        "score."
    )
    remedy = "Give other development examples with `--dev`."
    if config.dev:
        remedy = (
            "Remove them from one of the two files, give another `--dev`, or omit it: then a part "
            "of the training examples is held out, or the official split is used."
        )
    return {
        split: check_overlap(
            find_overlap(trained, digest_rows(examples)),
            ROWS,
            config.dev or split,
            rule if is_new else None,
            remedy,
            Mistake.DEV_IS_TRAIN,
        )
        for split, examples in dev.items()
    }


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
    unknown = []
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
    if len(unknown) == len(runs):
        return None, list(range(len(examples))), tuple(unknown)
    trained = [part for run in runs for part in read_digests(run.path, ROWS)]
    data = digest_rows(examples)
    rule = f"`{split}` must have rows that the model was not trained on."
    remedy = "Give other examples, or add `--allow-trained-rows` to compute the training score."
    overlap = find_overlap(trained, data)
    check_overlap(overlap, ROWS, split, None if allow_trained_rows else rule, remedy)
    seen = np.concatenate([part.normalised for part in trained])
    unseen = np.flatnonzero(~np.isin(data.normalised, seen)).tolist()
    return overlap, unseen, tuple(unknown)
