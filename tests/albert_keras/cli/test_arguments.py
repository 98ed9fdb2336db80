"""`--config` and `--set` are read into nested values."""

from pathlib import Path

import pytest

from albert_keras import recipes
from albert_keras.cli.arguments import read_values
from data_pipeline.errors import InputError


def test_a_recipe_is_read_by_its_name_unless_there_is_a_file_of_it(tmp_path, monkeypatch):
    values = read_values("albert-base-paper", ["training.batch_size=8"])
    assert values["optimizer"]["lr"] == 0.00176
    assert (values["training"]["batch_size"], values["training"]["steps"]) == (8, 125_000)
    monkeypatch.chdir(tmp_path)
    Path("albert-base-paper").write_text("training: {steps: 3}")
    assert read_values("albert-base-paper") == {"training": {"steps": 3}}
    with pytest.raises(InputError) as caught:
        read_values("albert-base-papr")
    assert str(caught.value) == (
        "`albert-base-papr` is neither a configuration file nor the name of a recipe. "
        f"Did you mean `albert-base-paper`? Recipes: {', '.join(recipes.names())}."
    )


def test_assignments_are_nested_yaml_values(tmp_path):
    values = read_values(None, ["training.steps=5", "model.size=albert-tiny", "a=[1, 2]", "b.c="])
    assert values == {
        "training": {"steps": 5},
        "model": {"size": "albert-tiny"},
        "a": [1, 2],
        "b": {"c": None},
    }
    (tmp_path / "config.yaml").write_text("training:\nmodel: {size: albert-tiny}")
    values = read_values(tmp_path / "config.yaml", ["training.steps=5"])
    assert values == {"training": {"steps": 5}, "model": {"size": "albert-tiny"}}


def test_epochs_replace_the_steps_of_a_recipe():
    recipe = read_values("sst-2", kind="finetuning")["training"]
    values = read_values("sst-2", ["training.epochs=1"], kind="finetuning")["training"]
    assert values | {"steps": recipe["steps"]} == recipe | {"epochs": 1} and "steps" not in values
    both = read_values("sst-2", ["training.epochs=1", "training.steps=7"], kind="finetuning")
    assert both["training"]["steps"] == 7


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
        ("a: &x 1\nb: *x", "line 2: YAML aliases .* not allowed"),
        ("a: !!bool 7", "line 1: YAML aliases .* and tags .* not allowed"),
        ("a: 1\nb: !!int 59:59::59", "line 2: YAML aliases .* not allowed"),
        ("8: 1", "line 1: each key must be a name. Received: 8"),
        ("a: 1\n" + "#" * (1 << 20), "is too large: it must have at most 1,048,576 bytes"),
        ("a:\n  b: 1\n  b: 2\n", "line 3: `b` is given twice"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, content, message):
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(InputError, match=message):
        read_values(tmp_path / "config.yaml")
