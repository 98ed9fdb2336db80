"""All problems of a configuration at once, each with what would mend it."""

import pytest

from data_pipeline.settings import Rule, Settings, SettingsError


class Inner(Settings):
    low: int = 1
    high: int = 4
    rules = (Rule(("low", "high"), lambda low, high: low < high, "should be below `high`"),)


class Outer(Settings):
    inner: Inner = Inner()
    name: str


def test_all_problems_are_reported_at_once():
    with pytest.raises(SettingsError) as caught:
        Outer(inner={"low": 9, "hihg": 3}, nmae="x")
    assert {problem.path for problem in caught.value.problems} == {
        ("inner", "low"),
        ("inner", "hihg"),
        ("name",),
        ("nmae",),
    }
    assert "did you mean `high`?" in str(caught.value)
    assert "`inner.low` should be below `high`. Received: low=9, high=4." in str(caught.value)


def test_a_wrong_type_names_the_value_received():
    with pytest.raises(SettingsError, match=r"`inner\.low` .* Received: 'many'\."):
        Outer(inner={"low": "many"}, name="x")


def test_a_rule_is_not_checked_on_a_field_that_is_wrong_itself():
    with pytest.raises(SettingsError) as caught:
        Inner(low="many")
    assert len(caught.value.problems) == 1


def test_settings_cannot_be_changed_but_copied():
    settings = Inner(low=2)
    with pytest.raises(ValueError, match="frozen"):
        settings.low = 3
    assert settings.replace(high=9) == Inner(low=2, high=9)
