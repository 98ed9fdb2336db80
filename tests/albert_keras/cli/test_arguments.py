"""`--config` and `--set` are read into nested values."""

from pathlib import Path

import pytest

from albert_keras import recipes
from albert_keras.cli.arguments import read_values
from data_pipeline.errors import InputError


def test_a_recipe_is_read_by_its_name():
    values = read_values("albert-base-paper", ["training.batch_size=8"])
    assert values["optimizer"]["lr"] == 0.00176 and values["training"]["batch_size"] == 8
    assert values["training"]["steps"] == 125_000


def test_a_file_takes_precedence_over_a_recipe_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("albert-base-paper").write_text("training: {steps: 3}")
    assert read_values("albert-base-paper") == {"training": {"steps": 3}}


def test_a_misspelt_recipe_gets_the_nearest_name_and_all_others():
    with pytest.raises(InputError) as caught:
        read_values("albert-base-papr")
    assert str(caught.value) == (
        "`albert-base-papr` is neither a configuration file nor the name of a recipe. "
        f"Did you mean `albert-base-paper`? Recipes: {', '.join(recipes.names())}."
    )


def test_assignments_are_nested_yaml_values():
    values = read_values(None, ["training.steps=5", "model.size=albert-tiny", "a=[1, 2]", "b.c="])
    assert values == {
        "training": {"steps": 5},
        "model": {"size": "albert-tiny"},
        "a": [1, 2],
        "b": {"c": None},
    }
    assert read_values() == {}


def test_an_empty_section_of_a_file_is_filled(tmp_path):
    (tmp_path / "config.yaml").write_text("training:\nmodel: {size: albert-tiny}")
    values = read_values(tmp_path / "config.yaml", ["training.steps=5"])
    assert values == {"training": {"steps": 5}, "model": {"size": "albert-tiny"}}


def test_a_shorter_run_scales_the_warm_up_of_a_recipe(caplog):
    caplog.set_level("INFO")
    values = read_values("continue", ["training.steps=500"])
    assert values["optimizer"]["warmup_steps"] == 30 and values["training"]["steps"] == 500
    assert "The warm-up of 750 of 12,500 steps is scaled to 30 of 500 steps." in caplog.text
    # A warm-up that fits, or that is given too, stays.
    assert read_values("continue", ["training.steps=750"])["optimizer"]["warmup_steps"] == 750
    both = ["training.steps=500", "optimizer.warmup_steps=600"]
    assert read_values("continue", both)["optimizer"]["warmup_steps"] == 600


@pytest.mark.parametrize(
    "assignment, message",
    [
        ("training.steps", "must be KEY=VALUE"),
        ("training.steps.more=3", "`steps` is a value, not a section"),
        ("training.steps=[", "is not valid YAML"),
    ],
)
def test_a_wrong_assignment_is_refused(assignment, message):
    with pytest.raises(InputError, match=message):
        read_values(None, ["training.steps=5", assignment])


@pytest.mark.parametrize(
    "content, message",
    [
        ("- 1", "must contain keys and values"),
        ("a: [", "is not valid YAML"),
        ("a: &x 1\nb: *x", "must not contain YAML aliases"),
        ("a: " + "[" * 3000, "is nested too deeply"),
        ("a: !!bool 7", "is not valid YAML"),
        ("a: 1\n" + "#" * (1 << 20), "is too large: it must have at most 1,048,576 bytes"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, content, message):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(InputError, match=message):
        read_values(tmp_path / "config.yaml")


def test_epochs_replace_the_steps_of_a_recipe():
    recipe = read_values("sst-2", kind="finetuning")
    assert "steps" in recipe["training"]
    values = read_values("sst-2", ["training.epochs=1"], kind="finetuning")
    assert values["training"] == {
        name: value for name, value in recipe["training"].items() if name != "steps"
    } | {"epochs": 1}
    both = read_values("sst-2", ["training.epochs=1", "training.steps=7"], kind="finetuning")
    assert both["training"]["steps"] == 7


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("training:\n  steps: 1\n  seed: 2\n  steps: 10\n")
    with pytest.raises(InputError, match="Line 4 of .* must not give `steps` again"):
        read_values(path)
