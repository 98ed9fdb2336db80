"""An option with one value is given once, in every command."""

import pytest
import typer

from albert_keras.cli import app, main


def commands(group, path=()):
    """Yields the words and the command of all commands, groups that are commands included."""
    for name, command in group.commands.items():
        yield (*path, name), command
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else ()


COMMANDS = dict(commands(typer.main.get_command(app)))
CASES = [
    pytest.param(path, option, id=" ".join((*path, option.name)))
    for path, command in COMMANDS.items()
    for option in command.params
    if option.param_type_name == "option" and not option.multiple and not option.is_flag
]


@pytest.mark.parametrize("path, option", CASES)
def test_an_option_with_one_value_is_refused_if_given_twice(path, option, capsys):
    name, value = max(option.opts, key=len), "8"
    assert main([*path, name, value, f"{name}={value}"]) == 2
    assert capsys.readouterr().err == (
        f"error: `{name}` must be given at most once. Received: {value} and {value}. "
        "Remove all but one.\nAK205: see `albert-keras explain AK205`\n"
    )


def test_there_are_options_of_every_command():
    assert {path[0] for path, *_ in (case.values for case in CASES)} >= {
        "vocab", "data", "plan", "pretrain", "finetune", "evaluate", "score", "convert", "export",
        "predict", "serve", "serve-check", "server-kit",
    }  # fmt: skip


def test_a_flag_is_either_set_or_not(capsys):
    words = ["finetune", "--from", "x", "--out", "y"]
    assert main([*words, "--random-baseline", "--no-random-baseline"]) == 2
    error = capsys.readouterr().err
    assert (
        "`--random-baseline` must be given at most once. Received: --random-baseline and --no-"
        in error
    )
    assert main([*words, "--json", "--json"]) == 2
    assert "`--task` is required" in capsys.readouterr().err


def test_options_with_several_values_may_be_repeated(capsys):
    words = ["finetune", "--from", "x", "--out", "y", "--label", "a", "--label", "b"]
    assert main([*words, "--set", "task.dev_share=0.2", "--set", "model.head_dropout=0"]) == 2
    assert "`--task` is required" in capsys.readouterr().err
    assert main([*words, "--task", "tagging"]) == 2
    assert "`task.label` may be several columns only for classification" in capsys.readouterr().err
