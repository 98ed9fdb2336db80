"""Reads the UTF-8 lines of a file, and collects the problems of its rows."""

import logging
from pathlib import PurePath
from typing import NamedTuple

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import bounded_lines
from data_pipeline.text import storage

_SHOWN = 5  # problems of a file in one message
#: More than this share of rows that cannot be used is an error, even if rows may be skipped.
_MOST_SKIPPED = 0.9

logger = logging.getLogger(__name__)


class SkippedRow(NamedTuple):
    """A row that was skipped because it cannot be used."""

    file: str
    line: int  # number of its first line, or of a question in its file, from 1
    reason: str
    raw: str  # as in the file, without its last line break


class Problems:
    """The problems of a file's rows, collected to be reported together."""

    def __init__(self, path):
        self.path = path
        self.count = 0
        self._shown = []

    def add(self, line: int, problem: str):
        """Adds a problem of a line, from 1; the text continues "line 7 ..."."""
        self.count += 1
        if self.count <= _SHOWN:
            self._shown.append(f"line {line} {problem}")

    def check(self, advice: str = ""):
        """Raises InputError with the first few problems and `advice` if there are any."""
        if self.count:
            raise InputError(self.listing(advice), Mistake.BAD_ROWS)

    def listing(self, advice: str = "") -> str:
        """Returns the first few problems and a sentence of advice; there must be a problem."""
        if self.count == 1:
            return f"`{self.path}` {self._shown[0]}{advice and f' {advice}'}"
        some = f", the first {_SHOWN}" if self.count > _SHOWN else ""
        some += advice and f". {advice.removesuffix('.')}"
        listing = "\n".join(f"  {problem}" for problem in self._shown)
        return f"{self.count} problems in `{self.path}`{some}:\n{listing}"


def skip_or_raise(
    path: str | PurePath,
    bad: list[SkippedRow],
    num_rows: int,
    skipped: list[SkippedRow] | None,
    may_skip: bool = True,
):
    """Adds the rows of a file that cannot be used to `skipped`, with a warning.

    Raises:
        InputError: If there are such rows and `skipped` is None, or if they are nearly all rows.
            If `may_skip`, it names the option.
    """
    if not bad:
        return
    problems = Problems(path)
    for row in bad:
        problems.add(row.line, row.reason)
    if skipped is None:
        problems.check("Correct this, or skip such rows with --skip-bad-rows." * may_skip)
    if len(bad) > _MOST_SKIPPED * num_rows:
        raise InputError(
            f"`--skip-bad-rows` must leave at least {1 - _MOST_SKIPPED:.0%} of the rows. "
            f"Received: `{path}`, in which {len(bad):,} of {num_rows:,} rows cannot be used. Check "
            "the file, and for tables --encoding and the columns."
        )
    skipped += bad
    logger.warning(
        "%s: skipped %s of %s rows. %s",
        path,
        f"{len(bad):,}",
        f"{num_rows:,}",
        problems.listing(),
    )


def is_number(column: str | int) -> bool:
    """Returns whether a column is given by number, not by name."""
    return str(column).isdecimal()


def numbered_lines(path):
    """Yields (number, text) of each line, including its end.

    InputError if a line is not UTF-8, or is too long, see `bounded_lines`.
    """
    with storage.open_to_read(path) as file:
        for line, data in enumerate(bounded_lines(file, f"`{path}`"), start=1):
            try:
                yield line, data.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"`{path}` line {line} must be UTF-8. "
                    f"Its byte {error.start} (0x{data[error.start]:02x}) is not."
                ) from None


def without_last_blanks(rows):
    """Yields rows, whose second entry are their fields, without blank ones at the end."""
    blanks = []
    for row in rows:
        if row[1] in ([], [""]):
            blanks.append(row)
        else:
            yield from blanks
            blanks.clear()
            yield row
