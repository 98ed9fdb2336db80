"""A written file has every setting with its explanation, and means what no file means."""

import json
import re
import shlex

import pytest
import yaml

from albert_keras.cli import main
from albert_keras.cli.arguments import read_values
from albert_keras.cli.init import FILE_KINDS, settings_file
from albert_keras.distillation.config import DistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import task_names
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PRESETS, PretrainingDataConfig
from data_pipeline.settings import Settings


def columns_of(name):
    """Returns the settings of the columns that a table of a task must have."""
    columns = {"classification": "label", "pair": "pair label", "regression": "label"}
    columns |= {"similarity": "pair"}
    return {one: one for one in ("text", *columns[name].split())} if name in columns else {}


@pytest.fixture
def mail(tmp_path):
    """Returns a table of two classes; a tenth of it is held out."""
    path = tmp_path / "mail.csv"
    rows = [f"the ferry left the harbour {n},{'spam' if n % 3 else 'ham'}" for n in range(30)]
    path.write_text("\n".join(["body,folder", *rows]) + "\n")
    return path


def leaves(config, path=()):
    for name, field in config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            yield from leaves(field.annotation, (*path, name))
        else:
            yield (*path, name), field


FILES = [
    ("pretrain", PretrainingConfig.of({}, size="albert-base", batch_size=512, steps=70)),
    ("pretrain", PretrainingConfig.of({"stages": [{"share": 1.0}]}, lr=0.5, time_budget="8h")),
    *(
        ("finetune", FinetuneConfig.of({}, task=name, epochs=2, **columns_of(name)))
        for name in task_names()
    ),
    ("distill", DistillationConfig.of({}, temperature=3.0)),
    *(("data", PretrainingDataConfig.preset(name)) for name in PRESETS),
]


@pytest.mark.parametrize("kind, config", FILES, ids=str)
def test_a_file_has_every_setting_with_its_description_and_means_the_same(tmp_path, kind, config):
    text = settings_file(config, "a comment")
    (tmp_path / "settings.yaml").write_text(text)
    values = read_values(tmp_path / "settings.yaml")
    words = " ".join(line.strip(" #") for line in text.splitlines())
    for path, field in leaves(type(config)):
        assert field.description.replace("None", "null") in words
        section = values
        for name in path:
            assert name in section
            section = section[name]
    again = type(config)(**values) if kind == "data" else type(config).of(values)
    assert again == config
    assert type(config) is FILE_KINDS[kind].config
    assert not re.search(r"\bNone\b", text) and max(map(len, text.splitlines())) <= 100


def test_the_command_writes_a_file_of_each_kind(tmp_path, mail, capsys):
    out = tmp_path / "my files" / "run.yaml"
    command = ["init", "pretrain", "--set", "training.steps=7", "--out", str(out)]
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shlex.split(shown[-1])[1:5] == ["albert-keras", "pretrain", "--config", str(out)]
    assert yaml.safe_load(out.read_text())["training"]["steps"] == 7
    values = {"name": "classification", "train": mail, "text": "body", "label": "folder"}
    own = [word for name, value in values.items() for word in ("--set", f"task.{name}={value}")]
    out = tmp_path / "finetune.yaml"
    assert main(["init", "finetune", *own, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"] == str(out)
    assert yaml.safe_load(out.read_text())["task"]["label"] == "folder"
    assert main(["init", "data", "--config", "bert", "--out", f"{tmp_path}/data.yaml"]) == 0
    assert yaml.safe_load((tmp_path / "data.yaml").read_text())["objective"] == "nsp"
    own = ["--set", "model.size=bert-mini", "--out", f"{tmp_path}/student.yaml"]
    assert main(["init", "distill", *own]) == 0
