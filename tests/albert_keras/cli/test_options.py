"""The options of all commands: what the help says, and where their values come from."""

import importlib
import inspect
import re
import subprocess
import sys

import pytest
import typer
import yaml

from albert_keras.cli import app, main
from albert_keras.distillation.config import DistillationConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.settings import options_of

CONFIGS = {
    "pretrain": PretrainingConfig,
    "finetune": FinetuneConfig,
    "distill": DistillationConfig,
    "data build": PretrainingDataConfig,
}
#: Functions whose arguments are options of a command.
LIBRARY = {
    "convert": "albert_keras.conversion.convert:convert",
    "data inspect": "data_pipeline.reports.inspection:inspect_records",
    "distill": "albert_keras.distillation.distill:distill",
    "embed": "albert_keras.texts.embed:embed",
    "evaluate": "albert_keras.tasks.evaluate:evaluate_task",
    "export": "albert_keras.serving.publish:export",
    "finetune": "albert_keras.tasks.finetune:finetune",
    "pretrain": "albert_keras.training.pretrain:pretrain",
    "runs report": "albert_keras.reports.page:write_report",
    "serve-check": "albert_keras.serving.serve_check:serve_check",
    "server-kit": "albert_keras.serving.kit.server_kit:write_kit",
    "similar": "albert_keras.texts.similar:similar",
    "vocab": "data_pipeline.tokenizers.vocabulary:train_vocabulary",
}
MOST_COMMANDS, MOST_OPTIONS = 23, 20


def commands(command, path=()):
    """Yields the words and the command of each command and group below one."""
    yield " ".join(path), command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = dict(commands(typer.main.get_command(app)))
RUN = {
    path: one
    for path, one in COMMANDS.items()
    if not hasattr(one, "commands") or any(each.name == "as_json" for each in one.params)
}
EACH = pytest.mark.parametrize("path", RUN)


def help_of(path, capsys):
    assert main([*path.split(), "--help"]) == 0
    return capsys.readouterr().out


def test_the_help_lists_commands_and_then_groups(capsys):
    shown = help_of("", capsys)
    order = [shown.index(f"\n  {name} ") for name in ("doctor", "plan", "embed", "vocab", "runs")]
    assert order == sorted(order) and len(COMMANDS[""].commands) <= MOST_COMMANDS


@EACH
def test_the_help_has_an_example_and_at_most_twenty_options(path, capsys):
    shown = help_of(path, capsys)
    example, options = shown.split("\nOptions:")[0].split("Example")[1], shown.split("Options:")[1]
    assert f"albert-keras {path}" in example
    names = {name for option in RUN[path].params for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"(?<=\s)--[a-z][a-z-]*(?![a-z=-])", example)) <= names
    assert len(re.findall(r"^  -", options, re.MULTILINE)) <= MOST_OPTIONS
    assert options.count("--log-format") == options.count("--debug") == 1


@pytest.mark.parametrize("path", COMMANDS)
def test_help_is_whole_sentences(path):
    command = COMMANDS[path]
    texts = [getattr(one, "help", None) for one in command.params if not one.hidden]
    assert all(text and text.endswith(".") for text in texts), texts
    assert re.match(r"[A-Z].*\.$", command.help.split("\n\n")[0], re.DOTALL)


@pytest.mark.parametrize("path", CONFIGS)
def test_every_setting_with_an_option_is_accepted_and_shown_with_its_default(path, capsys):
    shown = re.sub(r"\s+", " ", re.sub(r"-\n\s+", "-", help_of(path, capsys)))
    parameters = {parameter.name: parameter for parameter in RUN[path].params}
    for keyword, option in options_of(CONFIGS[path]).items():
        parameter, text = parameters[keyword], option.field.description
        assert parameter.help.startswith(text)
        default = option.default_text or parameter.default
        if not parameter.hidden and default and default is not True:
            assert re.search(
                rf"{re.escape(parameter.help)} \[default: .*{re.escape(str(default))}", shown
            )


@pytest.mark.parametrize("path, function", LIBRARY.items())
def test_the_defaults_are_those_of_the_library(path, function):
    module, _, name = function.partition(":")
    declared = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    options = {one.name: one for one in RUN[path].params}
    for name in options.keys() & declared.keys() - {"config", "layers", "seeds"}:
        default = declared[name].default
        if default is not inspect.Parameter.empty and not (path == "evaluate" and name == "step"):
            assert options[name].default == (None if default == () else default), name


def test_no_help_imports_what_takes_long():
    check = (
        "import sys; from albert_keras.cli import main\n"
        "for words in sys.argv[1].split(','): assert main([*words.split(), '--help']) == 0\n"
        "heavy = {'tensorflow', 'numpy', 'scipy', 'sklearn', 'apache_beam'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    command = [sys.executable, "-c", check, ",".join(COMMANDS)]
    subprocess.run(command, check=True, capture_output=True)


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
