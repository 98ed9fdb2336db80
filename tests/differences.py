"""Where plain values differ from those that were written down earlier."""

import itertools
import math


def differences(found, expected, rel=1e-6, abs=1e-5, place=""):
    """Lists where two trees of plain values differ.

    Args:
        found, expected: dicts, lists, numbers, texts. Keys that only `found` has are new, and no
            difference.
        rel, abs: float. Numbers with a fraction may differ by so much, whichever is more. Other
            instructions of the processor made differences of up to 3e-6.
        place: str. Where the trees stand in larger ones.

    Returns:
        list of str.
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        pairs = ((f"{place}.{key}", found.get(key), value) for key, value in expected.items())
    elif isinstance(expected, list) and isinstance(found, list | tuple):
        if len(found) != len(expected):
            return [f"{place}: {len(found)} instead of {len(expected)} values"]
        numbered = zip(itertools.count(), found, expected)
        pairs = ((f"{place}[{number}]", one, other) for number, one, other in numbered)
    elif isinstance(expected, float) and isinstance(found, float | int):
        is_close = math.isclose(found, expected, rel_tol=rel, abs_tol=abs)
        return [] if is_close else [f"{place}: {found!r} instead of {expected!r}"]
    else:
        return [] if found == expected else [f"{place}: {found!r} instead of {expected!r}"]
    return [
        line for where, one, other in pairs for line in differences(one, other, rel, abs, where)
    ]
