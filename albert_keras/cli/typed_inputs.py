"""Inputs of `albert-keras predict` that are typed: arguments, and lines of stdin as they arrive."""

import itertools
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import typer

from albert_keras.cli.output import quiet
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Bytes of stdin that are read at a time, if so many have arrived; and of the longest line.
_BLOCK = 1 << 16
_LONGEST_LINE = 1 << 24


def arriving_lines() -> Iterator[list[tuple[int, bytes]]]:
    """Yields the lines of stdin with their numbers, in lists of all that have arrived.

    InputError if there is none that is not blank, before any model is loaded if there is no line at
    all; or if one is too long.
    """
    lines = _lines_of_stdin()
    return itertools.chain([next(lines)], lines)


def _lines_of_stdin():
    if sys.stdin.isatty():
        quiet()
        typer.echo("reading lines from the keyboard until Ctrl-D", err=True)
    number, rest, are_blank = 0, b"", True
    while block := sys.stdin.buffer.read1(_BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        if lines:
            yield list(enumerate(lines, start=number + 1))
            number += len(lines)
            are_blank = are_blank and not any(map(bytes.strip, lines))
        if len(rest) > _LONGEST_LINE:
            raise InputError(
                f"Line {number + 1} of stdin must have at most {_LONGEST_LINE:,} bytes. Received: "
                "more. A line is a text."
            )
    if rest:
        yield [(number + 1, rest)]
    if are_blank and not rest.strip():
        raise InputError("There is nothing to process. Give TEXT, or lines on stdin.")


def converted_lines(
    batches: Iterable[list[tuple[int, bytes]]], convert: Callable[[int, str], Any]
) -> Iterator[list]:
    """Converts the lines of `arriving_lines`, without blank ones, whose count is logged at the end.

    Args:
        convert: Takes the number of a line, from 1, and the line.

    Raises:
        InputError: If a line is not UTF-8 or cannot be converted. The lines before it are yielded
            first.
    """
    blank = 0
    for lines in batches:
        done = []
        for number, data in lines:
            try:
                line = _decoded(number, data)
                if line.strip():
                    done.append(convert(number, line))
                else:
                    blank += 1
            except InputError:
                if done:
                    yield done
                raise
        if done:
            yield done
    if blank:
        lines = "line" if blank == 1 else "lines"
        logger.warning(
            "skipped %s blank %s of stdin: blank lines are not answered.", f"{blank:,}", lines
        )


def text_batches(texts: list[str] | None) -> Iterable[list[str]]:
    """Returns the texts of the command line, or else the lines of stdin as they arrive."""
    return [texts] if texts else converted_lines(arriving_lines(), lambda _, line: line)


def _decoded(number, data):
    try:
        return data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = f"0x{data[error.start]:02x}"
        raise InputError(f"Line {number} of stdin is not UTF-8. Received: {byte}.") from None
