"""Plans: a recipe for each time, and the commands that train a model."""

import os

import pytest

from albert_keras import recipes
from albert_keras.machine.plan import CHOICES, choose_recipe, plan_for_text
from tests.repository import ROOT, needs_repository


@pytest.fixture(autouse=True)
def empty_folder(monkeypatch, tmp_path):
    """The working directory is empty."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def corpus(tmp_path):
    """Returns a function that writes a text of some bytes, and returns its folder."""

    def write(num_bytes):
        folder = tmp_path / "my books"
        folder.mkdir()
        line = "The old ferry left the harbour before sunrise, and nobody wondered why.\n\n"
        (folder / "a.txt").write_text(line * (1 + num_bytes // len(line)))
        return str(folder)

    return write


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.recipe)
def test_the_records_of_a_choice_are_those_at_the_top_of_its_recipe(choice):
    text = recipes.path(choice.recipe).read_text(encoding="utf-8")
    assert f"vocab --size {choice.vocab_size}" in text
    for length, _ in choice.lengths:
        assert f"--max-seq-length {length}" in text
    for setting in choice.settings:
        assert f"--set {setting}" in text
    if choice.copies > 1:
        assert f"--copies {choice.copies}" in text
    values = recipes.values(choice.recipe)
    folders = [stage["data"] for stage in values.get("stages", ()) if "data" in stage]
    assert folders == [f"records-{length}" for length, _ in choice.lengths[:-1]]


@needs_repository
def test_the_page_has_the_recipe_of_each_time():
    page = (ROOT / "docs" / "plan.md").read_text(encoding="utf-8")
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]]
        for line in page.splitlines()
        if line.startswith("|")
    ]
    for hours, (_, on_cpu, on_gpu) in zip((0.1, 1, 8, 12), rows[2:], strict=True):
        assert choose_recipe(hours, False).recipe == on_cpu
        assert choose_recipe(hours, True).recipe == on_gpu


def test_a_text_gets_a_vocabulary_that_it_can_train(corpus):
    folder = corpus(1_200_000)
    assert plan_for_text([folder], 8, on_gpu=False).vocab_size == 4000
    assert plan_for_text([folder], 8, on_gpu=False).recipe == "albert-cpu-night"


def test_a_language_is_passed_on_to_the_commands(corpus):
    plan = plan_for_text([corpus(1_200_000)], 0.5, on_gpu=False, language="de")
    *of_text, train, _, _ = plan.commands
    assert len(of_text) == 3 and all("--language de" in command for command in of_text)
    assert "language" not in train
