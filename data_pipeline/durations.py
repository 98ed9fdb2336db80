"""Durations as people write and read them."""

import math
import re

from data_pipeline.errors import InputError

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION = re.compile("".join(rf"(?:{_NUMBER}{unit})?" for unit in _SECONDS))


def parse_duration(duration):
    """Reads a duration.

    Args:
        duration: str, int or float. Days, hours, minutes and seconds in this order, such as "8h",
            "90m", "1h30m", "2d" or "45s"; a bare number means seconds.

    Returns:
        float. Seconds.

    Raises:
        InputError: If it is not a duration, or not positive.
    """
    text = str(duration).strip().lower()
    found = _DURATION.fullmatch(text)
    if re.fullmatch(_NUMBER, text):
        seconds = float(text)
    elif text and found:
        values = zip(found.groups(), _SECONDS.values(), strict=True)
        seconds = sum(float(number) * unit for number, unit in values if number)
    else:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise InputError(
            "A duration must be a positive number of seconds, or days, hours, minutes and "
            f'seconds such as "8h", "1h30m" or "2d". Received: {duration!r}.'
        )
    return seconds


def format_duration(seconds):
    """Formats a duration by its two largest units.

    Args:
        seconds: float. Negative values count as 0.

    Returns:
        str. Such as "0.35 s", "45 s", "9 min 58 s", "3 h 12 min" or "2 days 5 h".
    """
    if round(seconds) < 10:
        return f"{max(seconds, 0):.2g} s"
    if round(seconds) < 60:
        return f"{round(seconds)} s"
    minutes, seconds = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(round(minutes + seconds / 60), 60)
    if hours < 24:
        return f"{hours} h {minutes} min"
    days, hours = divmod(round(hours + minutes / 60), 24)
    return f"{days:,} day{'s' if days > 1 else ''} {hours} h"
