"""Wrong answers as a table for people: the most confident first."""

import re
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.files import naming, whole_file

_HEADER = ("id", "confidence", "truth", "answer", "text")
#: What ends a cell or a line, here or in programs that read the file.
_BREAKS = re.compile(r"[\t\n\v\f\r\x00\x1c-\x1e\x85\u2028\u2029]+")


def write_errors(path, errors, limit=None) -> Path:
    """Writes wrong answers as tab-separated values under a header.

    Columns are `id`, `confidence`, `truth`, `answer` and `text`. Nothing is quoted; tabs and line
    ends inside a cell become a space.

    Args:
        path: str or Path. Such as `errors.tsv`; an older file is replaced.
        errors: iterable of `albert_keras.tasks.task.Error`.
        limit: int or None. How many to write at most; None writes all.

    Returns:
        Path.

    Raises:
        InputError: If `limit` is negative.
        OSError: If it cannot be written.
    """
    if limit is not None and limit < 0:
        raise InputError(f"`limit` should be 0 or more. Received: {limit}.")
    path = Path(path)
    ordered = sorted(errors, key=lambda error: -error.confidence)[:limit]
    rows = [_HEADER, *(_cells(error) for error in ordered)]
    text = "".join("\t".join(row) + "\n" for row in rows)
    with naming(path), whole_file(path) as temporary:
        # Halves of surrogate pairs, which JSON lets through, have no UTF-8.
        temporary.write_bytes(text.encode("utf-8", errors="backslashreplace"))
    return path


def _cells(error):
    values = (error.id, f"{error.confidence:.6g}", error.truth, error.answer, error.text)
    return [_BREAKS.sub(" ", str(value)) for value in values]
