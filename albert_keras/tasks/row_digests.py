"""Digests of the rows of a task, by which a row is recognized in another file.

A row is what the model reads: neither its label nor its id or number makes a difference. For
questions, of SQuAD and RACE, it is question and passage; options and answers are no part of it.
"""

import functools
import hashlib
import json
import unicodedata
from typing import Any

import numpy as np

from albert_keras.runs.trained_data import Digests
from albert_keras.tasks.examples import ChoiceExample, QuestionExample, TaggedExample


def row_of(example: Any) -> tuple[str, ...]:
    """Returns the texts of an example that make up its row."""
    if isinstance(example, TaggedExample):
        return example.words
    if isinstance(example, QuestionExample | ChoiceExample):
        return (example.question, example.context)
    return (example.first,) if example.second is None else (example.first, example.second)


def digest_rows(examples: list, fingerprint: str = "") -> Digests:
    """Digests the rows of examples, exactly and with their texts normalised, see `normalised`.

    Args:
        examples: list, as returned by `Task.read`.
        fingerprint: str. Identifies the examples in `run.json`.
    """
    rows = [row_of(example) for example in examples]
    exact = np.fromiter(map(_digest, rows), np.uint64, len(rows))
    plain = np.fromiter((_digest(map(normalised, row)) for row in rows), np.uint64, len(rows))
    return Digests(exact, plain, len(rows), fingerprint)


@functools.lru_cache(maxsize=1024)  # the questions of a passage follow one another
def normalised(text: str) -> str:
    """Returns a text in NFKC, casefolded, with single spaces between its words."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", text).split())


def _digest(texts):
    # In JSON, two texts differ from one with their content.
    return int.from_bytes(hashlib.sha256(json.dumps(list(texts)).encode()).digest()[:8], "big")
