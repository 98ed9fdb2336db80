"""All problems of a file of settings are found at once, each with its line."""

import json
import subprocess
import sys

import pytest

from albert_keras import recipes
from albert_keras.cli import main
from albert_keras.config_files.check import check_file
from albert_keras.config_files.kinds import (
    DATA,
    DISTILL,
    DISTILL_TASK,
    FILE_KINDS,
    FINETUNE,
    PRETRAIN,
)
from data_pipeline.settings import Settings, did_you_mean

PRETRAINING = """\
model:
  size: albert-mni
  hiden_size: 7
training:
  batchsize: 32
  steps: 0
  lr: 3
optimzer:
  lr: fast
optimizer:
  lr: fast
  warmup_steps: -1
batch_size: 12
stages:
  - share: 0.5
  - share: 0.2
    data: nowhere
"""


@pytest.fixture
def written(tmp_path):
    """Returns a function that writes a file of settings."""

    def write(text, name="run.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def found(path, kind=None):
    return [(line, key) for line, key, _ in check_file(path, kind).problems]


@pytest.mark.parametrize(
    "section, kind",
    [("model:\n  size: distilbert-mini\n", DISTILL), ("task:\n  name: rte\n", DISTILL_TASK)],
)
def test_a_file_with_a_teacher_is_for_a_distillation(written, section, kind):
    checked = check_file(written(f"{section}distillation:\n  temperature: 0\n  temprature: 2\n"))
    assert checked.kind is kind
    keys = [problem.key for problem in checked.problems]
    assert keys == ["distillation.temperature", "distillation.temprature"]
    assert "Did you mean `temperature`" in checked.problems[1].message


def test_all_problems_of_a_pretraining_have_their_lines(written):
    checked = check_file(written(PRETRAINING))
    assert checked.kind is PRETRAIN
    messages = {(line, key): message for line, key, message in checked.problems}
    assert list(messages) == [
        (2, "model.size"),
        (3, "model.hiden_size"),
        (5, "training.batchsize"),
        (6, "training.steps"),
        (7, "training.lr"),
        (8, "optimzer"),
        (11, "optimizer.lr"),
        (12, "optimizer.warmup_steps"),
        (13, "batch_size"),
        (15, "stages.0.share"),
        (17, "stages.1.data"),
    ]
    assert "`albert-mini`" in messages[2, "model.size"]
    assert "`hidden_size`" in messages[3, "model.hiden_size"]
    assert "`batch_size`" in messages[5, "training.batchsize"]
    assert messages[7, "training.lr"] == "is not a known key here; it belongs to `optimizer`."
    assert "`optimizer`" in messages[8, "optimzer"]
    assert "it belongs to `training`" in messages[13, "batch_size"]


def test_all_problems_of_a_finetuning(written):
    text = "task: {name: clasification, train: no.csv}\ntraining:\n  epochs: -1\noptimizer: 3\n"
    path = written(text)
    assert found(path) == [
        (1, "task.name"),
        (1, "task.train"),
        (3, "training.epochs"),
        (4, "optimizer"),
    ]
    assert found(written("training: {steps: 3}"), FINETUNE) == [(1, "task")]


def test_all_problems_of_data_settings(written):
    path = written("max_seq_length: 9000\nmasking: {max_ngram: 20, ngram: 3}\ncopise: 2\n")
    assert check_file(path).kind is DATA
    keys = [(1, "max_seq_length"), (2, "masking.max_ngram"), (2, "masking.ngram"), (3, "copise")]
    assert found(path) == keys


def test_a_warm_up_that_is_longer_than_the_run(written):
    text = "training:\n  steps: 10\noptimizer:\n  warmup_steps: 20\n"
    assert found(written(text)) == [(4, "optimizer.warmup_steps")]


def test_a_key_that_is_given_twice(written):
    checked = check_file(written("training:\n  steps: 10\n  seed: 1\n  steps: 20\n"))
    assert checked.problems == [(4, "training.steps", "is given twice, first in line 2.")]


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("training:\n  steps: [1\n", 3, "is not valid YAML"),
        ("training: &a {steps: 1}\noptimizer: *a\n", 1, "anchors"),
        ("- 1\n", 1, "must contain keys and values"),
        ("", 1, "must contain keys and values"),
    ],
)
def test_a_file_that_is_no_mapping(written, text, line, message):
    (problem,) = check_file(written(text)).problems
    assert problem.line == line and message in problem.message


def test_all_recipes_are_valid():
    for kind, name in (("pretraining", PRETRAIN), ("finetuning", FINETUNE)):
        for recipe in recipes.names(kind):
            checked = check_file(recipes.path(recipe, kind))
            # The records of stages are those that its user will build.
            problems = [one for one in checked.problems if not one.key.endswith(".data")]
            assert checked.kind is name and problems == [], recipe


def test_json_is_checked_as_well(written):
    path = written('{"training":\n {"steps": 1,\n "sed": 3}}', "run.json")
    assert found(path) == [(3, "training.sed")]


def keys_of(config):
    names = set(config.model_fields)
    for field in config.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            yield from keys_of(field.annotation)
    yield names


def typos_of(word):
    for at in range(len(word)):
        yield word[:at] + word[at + 1 :]
        yield word[:at] + "q" + word[at + 1 :]
        yield word[:at] + word[at] + word[at:]
        if at and word[at] != word[at - 1]:
            yield word[: at - 1] + word[at] + word[at - 1] + word[at + 1 :]


def test_the_suggestion_is_right_for_almost_all_single_typos():
    right = total = 0
    for known in {frozenset(keys) for kind in FILE_KINDS.values() for keys in keys_of(kind.config)}:
        for word in known:
            for typo in set(typos_of(word)) - known - {""}:
                total += 1
                right += did_you_mean(typo, known) == f". Did you mean `{word}`?"
    assert total > 2000 and right / total >= 0.95


def test_the_command_prints_every_problem_and_exits_with_2(written, capsys):
    path = written(PRETRAINING)
    assert main(["config", "check", str(path)]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == f"error: 11 problems in `{path}`:"
    assert shown[3].startswith(f"  {path}:5  `training.batchsize` is not a known key")
    assert main(["config", "check", str(path), "--json"]) == 2
    assert len(json.loads(capsys.readouterr().out)["problems"]) == 11
    assert main(["config", "check", str(written("training: {steps: 3}"))]) == 0
    assert "1 setting, no problem" in capsys.readouterr().out
    assert main(["config", "check", str(path), "--kind", "pretran"]) == 2
    assert "Did you mean `pretrain`?" in capsys.readouterr().err
    assert main(["config", "check", "missing.yaml"]) == 2


def test_the_check_imports_no_tensorflow(written):
    code = (
        "import sys; from albert_keras.cli import main\n"
        "assert main(['config', 'check', sys.argv[1]]) == 0\n"
        "assert not {'tensorflow', 'sklearn'} & set(sys.modules)"
    )
    path = written("training: {steps: 3}")
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, capture_output=True)


@pytest.mark.parametrize("text", ["1: x\n", "training: {on: 2}\n", "masking:\n  3: x\n"])
def test_keys_must_be_names(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    (problem,) = check_file(path).problems
    assert "must have names as keys. Received: " in problem.message
