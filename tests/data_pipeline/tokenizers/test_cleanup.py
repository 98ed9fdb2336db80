import unicodedata

import pytest

from data_pipeline.tokenizers.cleanup import character_ranges, clean_up


@pytest.mark.parametrize(
    "text, expected",
    [
        ("  Ünïcode\tCafé\n", "unicode cafe"),
        ("ﬁne ½ ™ İstanbul", "fine 1⁄2 tm istanbul"),
        ("Straße ＡＢＣ", "straße abc"),
        ("がぎぐ", "かきく"),
        ("", ""),
        (" \u3000\x1c\n", ""),
    ],
)
def test_it_does_what_the_original_does(text, expected):
    assert clean_up(text) == expected


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Ünïcode Cafe\u0301", "ünïcode café"),
        ("ﬁne ½ ＡＢＣ", "fine 1⁄2 abc"),
        ("がぎぐ", "がぎぐ"),
        ("हिन्दी", "हिन्दी"),
        ("한국어", "한국어"),
    ],
)
def test_without_stripping_marks_stay_and_are_composed(text, expected):
    assert clean_up(text, strip_accents=False) == expected


def test_case_is_kept_if_asked_for():
    assert clean_up(" Été  In PARIS", lower_case=False) == "Ete In PARIS"


def test_ranges_hold_exactly_the_code_points_of_their_class():
    def members(ranges):
        return {code for first, last in ranges for code in range(first, last + 1)}

    codes = range(0x110000)
    assert members(character_ranges(str.isspace)) == {code for code in codes if chr(code).isspace()}
    combining = {code for code in codes if unicodedata.combining(chr(code))}
    assert members(character_ranges(unicodedata.combining)) == combining
