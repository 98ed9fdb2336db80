"""Durations are read and formatted; `test_log_lines` has the progress of long work."""

import pytest

from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration, parse_duration


def test_durations_are_read_and_nothing_else():
    for text, seconds in (("8h", 28_800), ("1h30m", 5400), ("1.5h", 5400), ("3600", 3600), (1, 1)):
        assert parse_duration(text) == seconds
    for text in ("", "h", "8x", "30m1h", "1h30", "-1h", "0s", 0, -5, "nan", True, None, "1 h"):
        with pytest.raises(InputError, match="must be a positive number of seconds.*Received"):
            parse_duration(text)


def test_a_duration_is_formatted_by_its_two_largest_units():
    shown = {-1: "0 s", 0.3512: "0.35 s", 4.21: "4.2 s", 59.6: "1 min 0 s", 598: "9 min 58 s"}
    shown |= {3599.7: "1 h 0 min", 3 * 3600 + 130: "3 h 2 min", 183_000: "2 days 3 h"}
    assert {seconds: format_duration(seconds) for seconds in shown} == shown
