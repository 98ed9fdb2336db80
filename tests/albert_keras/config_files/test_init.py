"""A written file has every setting with its explanation, and means what no file means."""

import json
import re
import shlex

import pytest
import yaml

from albert_keras.cli import main
from albert_keras.cli.arguments import read_values
from albert_keras.config import AlbertConfig
from albert_keras.config_files.initial import data_file, finetuning_file, pretraining_file
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.task_config import TASK_NAMES
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PRESETS, PretrainingDataConfig
from data_pipeline.records.dataset_info import DatasetInfo, ShardInfo
from data_pipeline.records.record_files import RecordWriter
from data_pipeline.settings import Settings

#: The columns that a table of a task must have.
_COLUMNS = {
    "classification": ("text", "label"),
    "pair": ("text", "pair", "label"),
    "regression": ("text", "label"),
    "similarity": ("text", "pair"),
}


@pytest.fixture
def read(tmp_path):
    """Returns a function that writes the text of a file and reads it as `--config` does."""

    def read_back(content):
        path = tmp_path / "settings.yaml"
        path.write_text(content.text)
        return read_values(path)

    return read_back


@pytest.fixture
def records(tmp_path):
    """Returns a function that writes a folder of 640 records without labels."""

    def write(max_seq_length=128, objective="none"):
        folder = tmp_path / "records"
        folder.mkdir()
        with RecordWriter(folder / "a") as writer:
            writer.write([b""] * 640)
        shard = ShardInfo.of("a", writer.offsets, writer.sha256)
        DatasetInfo(
            max_seq_length=max_seq_length,
            max_predictions_per_seq=20,
            vocab_size=307,
            objective=objective,
            shards=(shard,),
        ).save(folder)
        return folder

    return write


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
            yield (*path, name)


def lacks(values, path):
    for name in path:
        if name not in values:
            return True
        values = values[name]
    return False


@pytest.mark.parametrize("size", ["albert-mini", "albert-tiny", "albert-base", "bert-base"])
@pytest.mark.parametrize("flags", [{}, {"batch_size": 512, "steps": 70}, {"lr": 0.5}])
def test_a_file_for_pretraining_means_the_same_as_no_file(read, size, flags):
    config = PretrainingConfig.of({}, size=size, **flags)
    values = read(pretraining_file(config, None, "a.yaml"))
    assert not [path for path in leaves(PretrainingConfig) if lacks(values, path)]
    again = PretrainingConfig.of(values)
    assert again.resolved("float32") == config.resolved("float32")
    assert again.optimizer.lr == config.optimizer.lr  # it still follows from model and batch


@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_file_for_finetuning_means_the_same_as_no_file(read, name):
    columns = {column: column for column in _COLUMNS.get(name, ())}
    config = FinetuneConfig.of({}, task=name, epochs=2, **columns)
    values = read(finetuning_file(config, None, "a.yaml"))
    assert not [path for path in leaves(FinetuneConfig) if lacks(values, path)]
    again = FinetuneConfig.of(values)
    assert again.task.max_seq_length is not None
    assert again.replace(task=config.task) == config


def test_files_for_distillation_mean_the_same_as_no_file(read):
    config = DistillationConfig.of({}, temperature=3.0)
    values = read(pretraining_file(config, None, "a.yaml"))
    assert not [path for path in leaves(DistillationConfig) if lacks(values, path)]
    assert DistillationConfig.of(values).distillation == config.distillation
    config = TaskDistillationConfig.of({}, task="sst-2", temperature=3.0)
    content = finetuning_file(config, None, "a.yaml")
    assert "albert-keras distill --config a.yaml --teacher ... --from ..." in content.text
    values = read(content)
    assert not [path for path in leaves(TaskDistillationConfig) if lacks(values, path)]
    assert TaskDistillationConfig.of(values).replace(task=config.task) == config


@pytest.mark.parametrize("preset", PRESETS)
def test_a_file_for_data_means_the_same_as_no_file(read, preset):
    config = PretrainingDataConfig.preset(preset)
    values = read(data_file(config, "a.yaml"))
    assert not [path for path in leaves(PretrainingDataConfig) if lacks(values, path)]
    assert PretrainingDataConfig(**values) == config


def test_every_setting_is_explained_by_its_description():
    text = data_file(PretrainingDataConfig(), "a.yaml").text
    words = " ".join(line.strip(" #") for line in text.splitlines())
    for name, field in PretrainingDataConfig.model_fields.items():
        assert (field.description or "").replace("None", "null") in words, name
    text = pretraining_file(PretrainingConfig(), None, "a.yaml").text
    for name in AlbertConfig.model_fields.keys() - {"vocab_size", "foreign_keys"}:
        if name != "down_scale_factor":  # without effect
            assert re.search(rf"^  # .+\n  # {name}: ", text, re.MULTILINE), name
    assert not re.search(r"\bNone\b", text) and max(map(len, text.splitlines())) <= 100


def test_the_shape_in_the_comments_is_that_of_the_size(read):
    config = PretrainingConfig.of({}, size="albert-tiny")
    text = pretraining_file(config, None, "a.yaml").text.replace("  # ", "  ")
    part = re.findall(r"^  (\w+): (\S+)$", text.split("\ntraining:")[0], re.MULTILINE)
    shape = {name: yaml.safe_load(value) for name, value in part if name != "size"}
    assert AlbertConfig.from_name("albert-tiny") == AlbertConfig(vocab_size=30_000, **shape)


def test_a_file_for_pretraining_is_adapted_to_the_records(read, records):
    content = pretraining_file(PretrainingConfig(), records(1024), "a.yaml")
    config = PretrainingConfig.of(read(content))
    assert config.training.sentence_order_weight == 0
    assert config.model["max_position_embeddings"] == 1024
    assert "2,000 steps of 32 records are 100 epochs." in content.text
    config.resolved("float32", has_sentence_labels=False)  # raises if the weight did not fit


def test_a_file_for_finetuning_is_adapted_to_the_table(read, mail, tiny_tokenizer):
    config = FinetuneConfig.of(
        {}, task="classification", train=str(mail), text="body", label="folder"
    )
    content = finetuning_file(config, tiny_tokenizer, "a.yaml")
    task = FinetuneConfig.of(read(content)).task
    assert task.labels == ("ham", "spam") and task.max_seq_length == 32
    assert "spam 18, ham 8" in content.text and "labels: spam 18, ham 8" in content.facts


def test_the_command_writes_a_new_file_and_never_replaces_one(tmp_path, mail, records, capsys):
    out = tmp_path / "my files" / "run.yaml"
    own = ["--data", str(records()), "--set", "training.steps=7"]
    command = ["init", "pretrain", *own, "--out", str(out)]
    assert main(command) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("640 records of 128 tokens")
    assert shlex.split(shown[-1])[1:5] == ["albert-keras", "pretrain", "--config", str(out)]
    assert yaml.safe_load(out.read_text())["training"]["steps"] == 7
    before = out.read_bytes()
    assert main(command) == 2
    assert "exists, and is not overwritten" in capsys.readouterr().err
    assert out.read_bytes() == before
    values = {"name": "classification", "train": mail, "text": "body", "label": "folder"}
    own = [word for name, value in values.items() for word in ("--set", f"task.{name}={value}")]
    for kind in ("finetune", "distill-task"):
        out = tmp_path / f"{kind}.yaml"
        assert main(["init", kind, *own, "--out", str(out), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["path"] == str(out)
        assert yaml.safe_load(out.read_text())["task"]["labels"] == ["ham", "spam"]
    assert main(["init", "data", "--config", "bert", "--out", f"{tmp_path}/data.yaml"]) == 0
    assert yaml.safe_load((tmp_path / "data.yaml").read_text())["objective"] == "nsp"
    own = ["--set", "model.size=bert-mini", "--out", f"{tmp_path}/student.yaml"]
    assert main(["init", "distill", *own]) == 0
