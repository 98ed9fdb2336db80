"""Rows of a table that were skipped because they cannot be used, and the file that lists them."""

import csv
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.files import naming, whole_file

#: Name of the list in an output folder.
SKIPPED_ROWS = "skipped-rows.csv"
#: More than this share of rows that cannot be used is an error, even if rows may be skipped.
_MOST_SKIPPED = 0.9

logger = logging.getLogger(__name__)


class SkippedRow(NamedTuple):
    """A row that was skipped."""

    file: str
    line: int  # number of its first line, from 1
    reason: str
    raw: str  # as in the file, without its last line break


def check_share(path, skipped: int, rows: int):
    """Raises InputError if nearly all rows of a table cannot be used."""
    if skipped > _MOST_SKIPPED * rows:
        raise InputError(
            f"`--skip-bad-rows` must leave at least {1 - _MOST_SKIPPED:.0%} of the rows. "
            f"Received: `{path}`, in which {skipped:,} of {rows:,} rows cannot be used. Check "
            "--delimiter, --encoding and the columns."
        )


def write_skipped_rows(
    folder: str | Path | None,
    skipped: Mapping[str, Sequence[SkippedRow]],
    name: str = SKIPPED_ROWS,
) -> Path | None:
    """Writes `skipped-rows.csv`, with the columns `file`, `line`, `reason` and `raw`.

    Without skipped rows, an older list is removed. The folder is created if missing; None says in
    the log how to get the list.

    Args:
        skipped: By file, see `Task.skipped_rows`.
        name: Of the list.

    Returns:
        The path of the list, or None if there is none.
    """
    rows = [row for rows in skipped.values() for row in rows]
    if folder is None:
        if rows:
            logger.warning("Give --out to list all skipped rows in a file.")
        return None
    path = Path(folder) / name
    if not rows:
        path.unlink(missing_ok=True)
        return None
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), whole_file(path) as temporary:
        # Bytes that could not be decoded are written as \udcXX.
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([SkippedRow._fields, *rows])
    logger.warning("skipped rows: %s", path)
    return path
