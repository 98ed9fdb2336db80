"""How many steps fit into a time: plain arithmetic, without TensorFlow.

`follow_budget.py` applies it while training goes on.
"""

import math
import re

from data_pipeline.errors import InputError

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_DURATION = re.compile("".join(rf"(?:{_NUMBER}{unit})?" for unit in _SECONDS))

#: Time kept for the last save: this share of the budget, and never more than so many seconds.
_MARGIN_SHARE, _LONGEST_MARGIN = 0.02, 5.0


def parse_duration(duration):
    """Reads a duration.

    Args:
        duration: str, int or float. Days, hours, minutes and seconds in this order, such as "8h",
            "90m", "1h30m", "2d" or "45s"; a bare number is seconds.

    Returns:
        float. Seconds.

    Raises:
        InputError: If it is none, or not positive.
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
            "A duration should be a positive number of seconds, or days, hours, minutes and "
            f'seconds such as "8h", "1h30m" or "2d". Received: {duration!r}.'
        )
    return seconds


class TimeBudget:
    """The time a run may take, over all its parts.

    Args:
        seconds: float. The whole budget.
        used: float. Seconds that earlier parts of the run took.

    Attributes:
        seconds, used: float. As given.
        margin: float. Seconds kept for the last save: 2 % of the budget, 5 s at most.
    """

    def __init__(self, seconds, used=0.0):
        if not 0 < seconds < math.inf or used < 0:
            raise InputError(
                "A time budget should be a positive number of seconds, of which not less than none "
                f"are used. Received: seconds={seconds!r}, used={used!r}."
            )
        self.seconds, self.used = float(seconds), float(used)
        self.margin = min(_MARGIN_SHARE * self.seconds, _LONGEST_MARGIN)

    def left(self, elapsed=0.0):
        """Returns the seconds left for steps; negative once they are over.

        Args:
            elapsed: float. Seconds this part of the run has taken.
        """
        return self.seconds - self.margin - self.used - elapsed

    def plan(self, step, steps_per_second, elapsed):
        """Tells how many steps the run has if it goes on at this speed.

        Args:
            step: int. Steps done.
            steps_per_second: float.
            elapsed: float. Seconds this part of the run has taken.

        Returns:
            int. Total number of steps, `step` + 1 at least.
        """
        return step + max(1, math.floor(self.left(elapsed) * steps_per_second))
