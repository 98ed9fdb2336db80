"""The files of similarity tasks: texts alone, equivalent pairs, or pairs with scores → examples."""

import logging
from pathlib import PurePath
from typing import Any

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.tables.cells import ScoreLabel
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tables.rows import is_number, numbered_lines
from albert_keras.tasks.tables.skipped_rows import SkippedRow
from data_pipeline.errors import InputError

_TABLES = (".tsv", ".csv", ".jsonl")

logger = logging.getLogger(__name__)


def is_text_file(path: str | PurePath) -> bool:
    """Returns whether a file has a text on each line, not a table's columns."""
    return PurePath(path).suffix.lower() not in _TABLES


def read_pairs(
    path,
    config,
    is_labelled: bool,
    skipped: list[SkippedRow] | None = None,
    all_columns: list[dict[str, Any]] | None = None,
) -> list[TextExample]:
    """Reads pairs of texts, and their scores if `is_labelled`, from a table.

    Args:
        config: TaskConfig, whose `text`, `pair` and `label` name the columns.
        skipped, all_columns: See `read_table`.

    Raises:
        InputError: If a column is not given, or the file has a row that cannot be used.
    """
    required = ("text", "pair", "label") if is_labelled else ("text", "pair")
    for column in required:
        if getattr(config, column) is None:
            raise InputError(
                f"`{column}` must name a column of `{path}`: a file of pairs has two texts"
                f"{' and a score' if is_labelled else ''}. Received: None. Give --{column}."
            )
    columns = [getattr(config, name) for name in ("text", "pair", "label")]
    return read_table(
        path,
        config.text,
        config.pair,
        config.label if is_labelled else None,
        ScoreLabel(),
        # From all columns, so that a file without scores is read like one with scores.
        has_header=not all(is_number(column) for column in columns if column is not None),
        dialect=config.dialect,
        skipped=skipped,
        all_columns=all_columns,
        pair_may_be_blank=False,
    )


def read_texts_alone(path, config, skipped: list[SkippedRow] | None = None) -> list[TextExample]:
    """Reads texts without pairs, each different one once: a text file, or a table's `text`.

    Arguments and errors are as of `read_pairs`.
    """
    if is_text_file(path):
        has_table = config.dev is not None  # which the settings are for
        if not has_table and (config.encoding is not None or config.delimiter is not None):
            raise InputError(
                f"`encoding` and `delimiter` are for tables. Received: `{path}`, which has a text "
                "on each line; such files must be UTF-8."
            )
        lines = (line.removesuffix("\n").removesuffix("\r") for _, line in numbered_lines(path))
        texts = [line for line in lines if line.strip()]
    elif config.text is None:
        raise InputError(f"`text` must name the column of the text in `{path}`. Received: None.")
    else:
        table = read_table(path, config.text, dialect=config.dialect, skipped=skipped)
        texts = [row.first for row in table]
    return different_texts(texts)


def different_texts(texts: list[str]) -> list[TextExample]:
    """Returns an example of each different text, in order; InputError if there is none.

    If a text occurred twice in a batch, each copy would count as a wrong match for the other.
    """
    different = list(dict.fromkeys(texts))
    if not different:
        raise InputError("There must be at least one text to train on. Received: none.")
    if len(different) < len(texts):
        logger.info("%s of %s texts are different.", f"{len(different):,}", f"{len(texts):,}")
    return [TextExample(str(number), text) for number, text in enumerate(different)]
