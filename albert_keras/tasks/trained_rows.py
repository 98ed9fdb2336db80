"""Finds examples that must not be scored, because the weights were trained on them.

A row is what the model reads: neither its label nor its id or number makes a difference. For
questions, of SQuAD and RACE, it is question and passage; options and answers are no part of it.
"""

import hashlib
import json
import logging

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

logger = logging.getLogger(__name__)


def digest_rows(examples: list, fingerprint: str = "") -> Digests:
    """Digests the rows of examples with their texts normalised, see `normalised`."""
    rows = (list(map(normalised, row_of(example))) for example in examples)
    # In JSON, two texts differ from one with their content.
    digests = (hashlib.sha256(json.dumps(row).encode()).digest() for row in rows)
    numbers = (int.from_bytes(digest[:8], "big") for digest in digests)
    return Digests(np.fromiter(numbers, np.uint64, len(examples)), len(examples), fingerprint)


def check_scored(run: Run, examples: list, split: str, allow_trained_rows: bool) -> Overlap | None:
    """Compares examples to score with the training examples of a run, and reports what they share.

    Args:
        run: A fine-tuned run.
        split: A split of the task, or the name of a file.
        allow_trained_rows: Whether all examples may have been trained on.

    Returns:
        The Overlap; None, with a warning, if it is unknown, as the run was converted or an older
        version trained it.

    Raises:
        InputError: If all examples were trained on and that is not allowed.
    """
    if not has_digests(run.path, ROWS, run.record["data"]["fingerprint"]):
        logger.warning(
            "It is unknown whether `%s` was trained on some of these examples: it was converted "
            "from another format, or trained by a version that did not save their digests.",
            run.path,
        )
        return None
    return check_overlap(
        find_overlap(read_digests(run.path, ROWS), digest_rows(examples)),
        ROWS,
        split,
        None
        if allow_trained_rows
        else f"`{split}` must have rows that the model was not trained on.",
        "Give other examples, or add `--allow-trained-rows` to compute the training score.",
    )
