"""Inputs of commands that are typed: arguments, and lines of stdin."""

import itertools
import logging
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import typer

from albert_keras.cli.output import quiet
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Lines of stdin that are answered at a time.
_AT_ONCE = 64


def lines_of_stdin() -> Iterator[tuple[int, str]]:
    """Returns the lines of stdin that are not blank, with their numbers from 1.

    InputError if there is none, before any model is loaded; or if one is not UTF-8.
    """
    lines = _lines()
    return itertools.chain([next(lines)], lines)


def _lines():
    if sys.stdin.isatty():
        quiet()
        typer.echo("reading lines from the keyboard until Ctrl-D", err=True)
    number = blank = 0
    for number, data in enumerate(sys.stdin.buffer, start=1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = f"0x{data[error.start]:02x}"
            raise InputError(f"Line {number} of stdin is not UTF-8. Received: {byte}.") from None
        if line.strip():
            yield number, line
        else:
            blank += 1
    if blank == number:
        raise InputError("There is nothing to process. Give TEXT, or lines on stdin.")
    if blank:
        lines = "line" if blank == 1 else "lines"
        logger.warning(
            "skipped %s blank %s of stdin: blank lines are not answered.", f"{blank:,}", lines
        )


def in_batches(inputs: Iterable[Any]) -> Iterator[list]:
    """Yields lists of inputs, which are answered together."""
    rest = iter(inputs)
    while batch := list(itertools.islice(rest, _AT_ONCE)):
        yield batch


def text_batches(texts: list[str] | None) -> Iterable[list[str]]:
    """Returns the texts of the command line, or else the lines of stdin."""
    return [texts] if texts else in_batches(line for _, line in lines_of_stdin())
