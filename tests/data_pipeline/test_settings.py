"""A configuration reports all wrong fields at once; its fields may be options."""

from datetime import date
from pathlib import Path

import pytest

from data_pipeline.settings import Rule, Settings, SettingsError, did_you_mean, option, options_of


class Inner(Settings):
    low: int = 1
    high: int = 4
    rules = (Rule(("low", "high"), lambda low, high: low < high, "must be below `high`"),)


class Outer(Settings):
    inner: Inner = Inner()
    name: str


def test_a_path_is_kept_as_text():
    assert Outer(name=Path("a") / "b.tsv").model_dump()["name"] == "a/b.tsv"
    with pytest.raises(SettingsError, match="`inner.low` must be a valid integer"):
        Outer(name="x", inner={"low": Path("a")})
    for read_by_yaml in (False, 30610, date(2024, 1, 2)):  # NO, 8:30:10
        with pytest.raises(SettingsError, match="`name` must be a valid string. Received: "):
            Outer(name=read_by_yaml)


def test_all_wrong_fields_are_reported_at_once():
    with pytest.raises(SettingsError) as caught:
        Outer(inner={"low": "x", "hihg": 3}, nmae="x")
    assert {problem.path for problem in caught.value.problems} == {
        ("inner", "low"),
        ("inner", "hihg"),
        ("name",),
        ("nmae",),
    }
    assert "`inner.hihg` is not a known key. Did you mean `high`?" in str(caught.value)


def test_a_rule_is_checked_if_the_fields_are_valid():
    with pytest.raises(SettingsError) as caught:
        Outer(inner={"low": 9}, name="x")
    (problem,) = caught.value.problems
    assert str(problem) == "`inner.low` must be below `high`. Received: low=9, high=4."
    with pytest.raises(SettingsError) as caught:
        Inner(low="many")
    assert len(caught.value.problems) == 1


def test_integers_have_a_limit():
    assert Inner(high=2**31 - 1).high == 2**31 - 1
    with pytest.raises(SettingsError, match="`high` must be at most 2,147,483,647. Received: "):
        Inner(high=2**31)


def test_options_are_found_in_sections_and_own_fields_come_before_inherited_ones():
    class Base(Settings):
        seed: int = option(1, "Random seed.")

    class Section(Base):
        steps: int = option(5, "Number of steps.", keyword="length", flag="--len")
        other: int = 3

    class Whole(Settings):
        model: dict = option({"size": "small"}, "Named model.", keyword="size", key="size")
        section: Section = Section()

    options = options_of(Whole)
    assert {name: option.path for name, option in options.items()} == {
        "size": ("model", "size"),
        "length": ("section", "steps"),
        "seed": ("section", "seed"),
    }
    assert list(options) == ["size", "length", "seed"] and options["length"].flag == "--len"


def test_a_truth_value_is_no_number():
    class Both(Settings):
        size: int = 1
        rate: float = 0.5
        is_on: bool = False

    assert Both(size=1.0, is_on=True).is_on
    with pytest.raises(SettingsError) as caught:
        Both(size=True, rate=False)
    assert [str(problem) for problem in caught.value.problems] == [
        "`size` must be a number. Received: True.",
        "`rate` must be a number. Received: False.",
    ]


def test_the_nearest_known_word_is_named():
    assert did_you_mean("labl", ["text", "label"]) == ". Did you mean `label`?"
    assert did_you_mean("x", ["text", "label"]) == ". Expected one of: label, text."
    assert did_you_mean("label", ["label\u200b"]) == r". Did you mean `label\u200b`?"
    assert did_you_mean("label", ["label\xa0"]) == r". Did you mean `label\xa0`?"
