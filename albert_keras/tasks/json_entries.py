"""JSON files of examples, checked against the shape that their reader needs."""

import functools
import re
from typing import Any

from pydantic import TypeAdapter, ValidationError

from albert_keras.report import shortened_value
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json


def parsed_line(text: str, location: str) -> Any:
    """Returns the JSON value of a line; InputError, which begins with its location, if broken."""
    try:
        return parse_json(text, strict=False)
    except ValueError as error:
        raise InputError(f"{location} must be JSON: {getattr(error, 'msg', error)}.") from error


def checked(shape: Any, value: Any, source: str) -> Any:
    """Returns a JSON value as a type that pydantic knows, without converting texts or numbers.

    Other keys of objects are ignored.

    Raises:
        InputError: If it has another shape, see `broken`; entries are named by their keys, and
            counted from 0, as in `data[0].paragraphs[2].context`.
    """
    try:
        return _adapter(shape).validate_python(value, strict=True)
    except ValidationError as error:
        raise broken(source, [_problem(item) for item in error.errors()]) from None


def broken(source: str, problems: list[str], advice: str = "") -> InputError:
    """Returns an error that names the first problem of a source and counts them, with advice."""
    count = f" ({len(problems):,} broken entries, the first)" if len(problems) > 1 else ""
    return InputError(f"{source}{count}: {problems[0]}{advice}")


@functools.cache
def _adapter(shape):
    return TypeAdapter(shape)


def _problem(item):
    """Returns what is wrong with an entry, from an error of pydantic."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"])
    name = "".join(parts).removeprefix(".")
    name = f"`{name}`" if name else "it"
    if item["type"] == "missing":
        return f"{name} is missing."
    message = item["msg"].removeprefix("Value error, ")
    message = re.sub(r"^[A-Z]\w+ should ", "must ", message)  # "Input should", "List should"
    if item["type"] == "model_type":
        message = "must be an object"
    return f"{name} {message}. Received: {shortened_value(item['input'])}."
