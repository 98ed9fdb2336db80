"""A user's own table, .tsv, .csv or .jsonl: rows with one or two texts and a label → examples.

No row is skipped silently: one that cannot be used is an error with file, line and reason.
"""

import collections
import json
import logging
import math
import re
from collections.abc import Sequence
from pathlib import PurePath

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.tables.rows import Problems, is_number, read_rows
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: With more labels than this, they must be fewer than half of the rows.
_FEW_LABELS = 20

logger = logging.getLogger(__name__)


def read_table(
    path: str | PurePath,
    text: str | int,
    pair: str | int | None = None,
    label: str | int | None = None,
    has_scores: bool = False,
    has_header: bool | None = None,
    known_labels: Sequence[str] | None = None,
) -> list[TextExample]:
    """Reads a table: .tsv, .csv or .jsonl.

    A .csv may quote its fields, which may then contain commas and line breaks. A .tsv has no
    quoting: a row is a line. A .jsonl has an object per line. All are UTF-8; a byte order mark,
    CRLF and blank lines at the end make no difference.

    Args:
        text, pair, label: Columns, by name or number from 0; `label` None if labels are to be
            predicted.
        has_scores: Whether labels are numbers; otherwise they are names of classes, and
            white space around them is removed.
        has_header: Whether the first row of a .tsv or .csv names the columns; None if it does so
            as soon as any column is given by name.
        known_labels: The only labels that are allowed, for example those of the training file.

    Returns:
        `id` is the number of the row, from 0. `label` is a str, a float, or None if no column is
        given.

    Raises:
        InputError: If the file cannot be read or has another format, if a column is missing, or
            if a row has another number of columns, a blank text or an unusable label; the first
            few of these are listed.
    """
    columns = [column for column in (text, pair, label) if column is not None]
    if has_header is None:
        has_header = not all(is_number(column) for column in columns)
    problems, examples = Problems(path), []
    for line, (first, *rest) in read_rows(path, columns, has_header, problems):
        second = rest.pop(0) if pair is not None else None
        _check_text(first, text, line, problems)
        if pair is not None:
            _check_text(second, pair, line, problems, may_be_blank=True)
        value = None
        if label is not None:
            value = _label(rest[0], has_scores, known_labels, line, problems)
        examples.append(TextExample(str(len(examples)), first, second, value))
    problems.check()
    if not examples:
        raise InputError(f"`{path}` must contain at least one row. It is empty.")
    if label is not None and not has_scores and not has_header:
        _warn_of_header(path, examples)
    return examples


def label_names(examples: Sequence[TextExample]) -> tuple[str, ...]:
    """Returns the different labels of examples, sorted; whole numbers by value.

    Fewer than two, or about as many as examples, are an InputError.
    """
    names = list(dict.fromkeys(example.label for example in examples))
    if len(names) < 2:
        raise InputError(f"There must be at least two classes of labels. Received: {names}.")
    if len(names) > _FEW_LABELS and 2 * len(names) > len(examples):
        raise InputError(
            f"The labels must be names of classes. Received: {len(names)} different ones in "
            f"{len(examples)} rows, such as {names[0][:40]!r}. Is this the column of the label? "
            "If labels are numbers, use --task regression."
        )
    if all(re.fullmatch(r"-?\d+", name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def _check_text(text, column, line, problems, may_be_blank=False):
    if not isinstance(text, str):
        problems.add(line, f"must have a text as `{column}`. Received: {text!r}.")
    elif not text.strip() and not may_be_blank:
        problems.add(line, f"must have a text as `{column}`. It is blank.")
    elif not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        problems.add(line, f"has half a surrogate pair in `{column}`.")


def _label(value, has_scores, names, line, problems):
    """Returns the label in a field; adds a problem if it cannot be used."""
    if has_scores:
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            problems.add(line, f"must have a number as label. Received: {value!r}.")
        return number
    if isinstance(value, (bool, int)):
        value = json.dumps(value)
    if not isinstance(value, str) or not value.strip():
        problems.add(line, f"must have a name as label. Received: {value!r}.")
        return None
    name = value.strip()
    if names is not None and name not in names:
        problems.add(line, f"has an unknown label, `{name}`{did_you_mean(name, names)}")
    return name


def _warn_of_header(path, examples):
    """Warns if the first row may be a header: its label is the only one that occurs once."""
    if PurePath(path).suffix.lower() == ".jsonl":
        return
    counts = collections.Counter(example.label for example in examples)
    once = [name for name, count in counts.items() if count == 1]
    if once == [examples[0].label] and len(counts) > 1:
        logger.warning(
            "%s: the label `%s` of the first row does not occur again. If that row is the header, "
            "give the columns by name or pass has_header=True.",
            path,
            once[0],
        )
