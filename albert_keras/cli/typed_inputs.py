"""What somebody asks on the command line: arguments, or lines of stdin."""

import json
import sys

import typer

from data_pipeline.errors import InputError


def typed_inputs(texts, pair, question, options):
    """Returns what a task is asked, a dict of str for each TEXT or else for each line of stdin.

    Args:
        texts: list of str or None.
        pair, question: str or None. What goes with each that does not bring its own.
        options: list of str or None. Likewise.

    Raises:
        InputError: As of `read_lines`, or if a line begins like a JSON object and is none.
    """
    flags = {"pair": pair, "question": question, "options": options or None}
    flags = {name: value for name, value in flags.items() if value is not None}
    name = "context" if {"question", "options"} & flags.keys() else "text"
    if texts:
        return [{name: text} | flags for text in texts]
    return [
        flags | (_object(number, line) if line.startswith("{") else {name: line})
        for number, line in read_lines()
    ]


def read_lines():
    """Returns the lines of stdin that are not blank, with their numbers: list of (int, str).

    Raises:
        InputError: If a line is no UTF-8, or all are blank.
    """
    if sys.stdin.isatty():
        typer.echo("reading lines from the keyboard, until Ctrl-D", err=True)
    lines = []
    for number, data in enumerate(sys.stdin.buffer, start=1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = f"0x{data[error.start]:02x}"
            raise InputError(f"Line {number} of stdin should be UTF-8. Received: {byte}.") from None
        if line.strip():
            lines.append((number, line))
    if not lines:
        raise InputError("What to answer should be TEXT or lines of stdin. Received: nothing.")
    return lines


def _object(number, line):
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"Line {number} of stdin should be a JSON object, as it begins with {{. It is broken: "
            f'{error}. A text like that wants to be in one: {{"text": ...}}.'
        ) from None
