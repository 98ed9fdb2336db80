"""The options of a command and the fields of its configuration are the same."""

import re

import pytest
import typer
import yaml

from albert_keras.cli import app, main
from albert_keras.cli.config_options import default_of
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.settings import Settings, options_of

#: Options that are no settings: inputs, outputs, and how the command runs.
_OWN = {
    ("pretrain",): "data out init-from from-step albert-config tokenizer eval-data dry-run",
    (
        "finetune",
    ): "from out seeds random-baseline bag-of-words from-step albert-config tokenizer cache",
    ("data", "build"): "corpus tokenizer out preset format workers runner",
}
_SHARED = {"--config", "--set", "--json", "--log-format", "--verbose", "--debug"}
CONFIGS = {
    ("pretrain",): PretrainingConfig,
    ("finetune",): FinetuneConfig,
    ("data", "build"): PretrainingDataConfig,
}
FIELDS = [
    pytest.param(path, keyword, option, id=f"{' '.join(path)} {keyword}")
    for path, config in CONFIGS.items()
    for keyword, option in options_of(config).items()
]


def command_of(path):
    command = typer.main.get_command(app)
    for name in path:
        command = command.commands[name]
    return command


def on_one_line(text):
    """Joins the lines of a help text, which may break words after a hyphen."""
    return re.sub(r"\s+", " ", re.sub(r"-\n\s+", "-", text))


@pytest.mark.parametrize("path, keyword, option", FIELDS)
def test_the_help_shows_every_field_with_its_description_and_default(path, keyword, option, capsys):
    assert main([*path, "--help"]) == 0
    shown = on_one_line(capsys.readouterr().out.split("Options:")[1])
    flag = option.flag or f"--{keyword.replace('_', '-')}"
    start = re.search(rf" {flag} ", shown).end()
    entry = shown[start:].partition(option.field.description)
    assert entry[1] and len(entry[0]) < 80, "the description follows its option"
    default = default_of(option)
    if option.default_text is not None:
        assert entry[2].startswith(f" [default: ({option.default_text})]")
    elif isinstance(default, bool):
        assert entry[2].startswith(f" [default: {'' if default else 'no-'}{flag[2:]}]")
    elif default is not None:
        assert entry[2].startswith(f" [default: {default}]")
    else:
        assert not entry[2].startswith(" [default")


@pytest.mark.parametrize("path", CONFIGS, ids=" ".join)
def test_every_option_is_a_field_or_one_of_a_short_list(path):
    names = {name for parameter in command_of(path).params for name in parameter.opts[-1:]}
    own = {f"--{name}" for name in _OWN[path].split()}
    own |= {"beam_options"} if path == ("data", "build") else {"--allow-change"}
    fields = {
        option.flag or f"--{keyword.replace('_', '-')}"
        for keyword, option in options_of(CONFIGS[path]).items()
    }
    assert names == fields | own | _SHARED


def is_section(field):
    return isinstance(field.annotation, type) and issubclass(field.annotation, Settings)


def sections_of(config):
    yield config
    for field in config.model_fields.values():
        if is_section(field):
            yield from sections_of(field.annotation)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=lambda config: config.__name__)
def test_every_field_is_described_by_a_sentence(config):
    for section in sections_of(config):
        for name, field in section.model_fields.items():
            if not is_section(field):
                assert (field.description or "").endswith("."), f"{section.__name__}.{name}"


def test_only_given_options_reach_the_configuration(monkeypatch, tmp_path, tiny_records):
    received = []

    def pretrain(data, out, settings, *arguments, **more):
        received.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr("albert_keras.training.pretrain.pretrain", pretrain)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump({"training": {"recompute": True, "batch_size": 8}}))
    command = ["pretrain", "--data", str(tiny_records), "--out", "x", "--config", str(file)]
    assert main([*command, "--no-recompute", "--accumulate", "2", "--lr", "1e-3"]) == 130
    (settings,) = received
    assert settings.training.model_fields_set == {"recompute", "batch_size", "accumulation_steps"}
    assert (settings.training.recompute, settings.training.batch_size) == (False, 8)
    assert settings.optimizer.lr == 1e-3 and settings.model == {"size": "albert-mini"}


def test_paths_are_normalized_and_columns_are_text(monkeypatch, tmp_path):
    received = []
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "a.tsv").touch()

    def finetune(origin, out, settings, **more):
        received.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr("albert_keras.tasks.finetune.finetune", finetune)
    command = ["finetune", "--from", "random", "--out", "x", "--task", "classification"]
    assert main([*command, "--train", "mail//a.tsv", "--text", "1", "--label", "2"]) == 130
    (settings,) = received
    assert settings.task.train == "mail/a.tsv"
    assert (settings.task.text, settings.task.label) == ("1", "2")
