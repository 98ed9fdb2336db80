"""Sizes of memory and text as people write and read them."""

import re

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


def bytes_text(number: float) -> str:
    """Formats a number of bytes in the largest unit of at least 1, such as "1.5 GB"."""
    for exponent, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if number >= 1000**exponent:
            scaled = number / 1000**exponent
            return f"{scaled:,.0f} {unit}" if scaled >= 100 else f"{scaled:.3g} {unit}"
    return f"{number:.0f} bytes"
