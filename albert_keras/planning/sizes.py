"""Sizes of memory and text as people write them, and minimums rounded up."""

import re
from decimal import ROUND_CEILING, Context

from data_pipeline.errors import InputError

_EXPONENTS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([kmgt]?)(i?)b", re.IGNORECASE)


def parse_bytes(text: str, name: str = "a size") -> float:
    """Reads a size in bytes; raises InputError if it is not one, or not positive.

    "12GB" and "500MB" are powers of 1000, "12GiB" of 1024. The error shows the name of the value.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None or float(found[1]) == 0:
        raise InputError(
            f"`{name}` must be a size with its unit, such as 12GB, 12GiB or 500MB. "
            f"Received: {text!r}."
        )
    number, unit, is_binary = found.groups()
    return float(number) * (1024 if is_binary else 1000) ** _EXPONENTS[unit.lower()]


def rounded_up(number: float) -> float:
    """Rounds a minimum up to three significant digits, so that the value that is shown suffices."""
    return float(Context(prec=3, rounding=ROUND_CEILING).create_decimal(str(number)))
