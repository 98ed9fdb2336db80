"""Answers as plain values, and how they are compared."""

from collections.abc import Mapping
from typing import Any

#: What answers copy from the examples, whose texts are not stored.
_COPIED = ("id", "words", "option")
#: The largest difference of numbers, or of their size if that is more than 1.
TOLERANCE = 1e-4


def plain(answers: list) -> list[dict[str, Any]]:
    """Returns named answers as JSON has them, without what they copy from the examples."""
    found = []
    for answer in answers:
        values = {name: one for name, one in answer._asdict().items() if name not in _COPIED}
        if "nbest" in values:  # their probabilities, without their texts
            values["nbest"] = [
                [value for name, value in one.items() if name != "text"] for one in values["nbest"]
            ]
        found.append(_plain(values))
    return found


def _plain(value):
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return round(float(value), 6) if hasattr(value, "__float__") and not _is_whole(value) else value


def _is_whole(value):
    return isinstance(value, bool | int | str) or value is None


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Returns where values differ by more than `TOLERANCE`, with both of them."""
    if isinstance(expected, dict) and isinstance(found, dict):
        changed = expected.keys() ^ found.keys()
        if changed:
            return [f"{path}: only in one of them: {', '.join(map(str, sorted(changed)))}"]
        return [
            each
            for name in expected
            for each in differences(expected[name], found[name], f"{path}/{name}")
        ]
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) == len(found):
            return [
                each
                for at, pair in enumerate(zip(expected, found, strict=True))
                for each in differences(*pair, f"{path}/{at}")
            ]
    elif isinstance(expected, float) and isinstance(found, float | int):
        if abs(expected - found) <= TOLERANCE * max(1.0, abs(expected)):
            return []
    elif expected == found:
        return []
    return [f"{path}: {expected!r} expected, {found!r} found"]
