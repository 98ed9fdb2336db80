"""What all commands have in common: --json, --log-format, --verbose, --debug, how they print a
result, and that an option with one value is given once."""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
import typer.core

from albert_keras.cli.interruption import interruptible
from albert_keras.cli.option_names import OptionNames
from albert_keras.cli.output import show, start
from albert_keras.cli.parameters import (
    given_of,
    help_and_entries,
    parameters_of,
    refuse,
    signature_of,
)
from data_pipeline.errors import InputError, Mistake
from data_pipeline.settings import options_of

#: The options of every command, which have one line in each help.
_COMMON = (
    ("as_json", bool, False, typer.Option("--json", hidden=True)),
    ("log_format", str, "text", typer.Option("--log-format", hidden=True)),
    ("verbose", bool, False, typer.Option("-v", "--verbose", hidden=True)),
    ("debug", bool, False, typer.Option("--debug", hidden=True)),
)
#: The errors that typer raises for unknown, missing and wrong options.
USAGE_ERRORS = typer.BadParameter.__mro__[1]
#: Groups of the commands in the order of the help: as data flows.
PANELS = ("Start", "Data", "Train", "Ask", "Serve", "Exchange and research")
_COMMON_LINE = (
    "Every command: --json (the result), --log-format json (the messages), -v (more of them), "
    "--debug (tracebacks)."
)


class _GivenOnce:
    """Refuses an option with one value that is given twice; click would silently take the last."""

    def parse_args(self, ctx, args):
        if ctx.resilient_parsing:  # completes a command that is not finished
            return super().parse_args(ctx, args)
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter in given:
            has_one_value = parameter.param_type_name == "option" and not parameter.multiple
            if has_one_value and given.count(parameter) > 1:
                name = max(parameter.opts, key=len)
                raise InputError(
                    f"`{name}` must be given at most once. Remove all but one.",
                    Mistake.GIVEN_TWICE,
                )
        return super().parse_args(ctx, args)


class _Command(_GivenOnce, typer.core.TyperCommand):
    def format_options(self, ctx, formatter):
        for one in self.params:
            if one.param_type_name == "argument":  # typer would add a type of Python
                one.display_type_rich = lambda ctx: None
        super().format_options(ctx, formatter)
        _write_common_line(formatter)


class _Group(_GivenOnce, typer.core.TyperGroup):
    def resolve_command(self, ctx, args):
        try:
            return super().resolve_command(ctx, args)
        except USAGE_ERRORS as error:
            for name, group in self.commands.items():
                if args[0] in getattr(group, "commands", ()):
                    command = f"{ctx.command_path} {name} {args[0]}"
                    error.message = f"No such command {args[0]!r}. Did you mean `{command}`?"
            raise

    def format_options(self, ctx, formatter):
        super().format_options(ctx, formatter)  # lists the commands, too
        if any(one.name == "as_json" for one in self.params):  # the group is also a command
            _write_common_line(formatter)

    def format_commands(self, ctx, formatter):
        """Lists the commands by their panels, which typer does only with rich."""
        rows: dict[str, list] = {panel: [] for panel in PANELS}
        width = formatter.width - 6 - max(map(len, self.commands))
        for name, command in self.commands.items():
            panel = getattr(command, "rich_help_panel", None) or "Commands"
            rows.setdefault(panel, []).append((name, command.get_short_help_str(width)))
        for panel in filter(rows.get, rows):
            with formatter.section(panel):
                formatter.write_dl(rows[panel])


def _write_common_line(formatter):
    formatter.write_paragraph()
    formatter.write_text(_COMMON_LINE)


class App(typer.Typer):
    """A typer application; all of its commands refuse options with one value given twice."""

    def __init__(self, **settings):
        super().__init__(cls=_Group, rich_markup_mode=None, **settings)

    def command(self, *args, cls=_Command, **settings):
        return super().command(*args, cls=cls, **settings)


class Call(NamedTuple):
    """A function that a command calls, with what was given of its parameters.

    Its module is imported when it is called: most modules import TensorFlow.
    """

    context: typer.Context
    function: str  # as "module:name"
    given: dict[str, Any]

    def __call__(self, *values: Any, **others: Any) -> Any:
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(module), name)(*values, **others, **self.given)

    def to(self, function: str, problem: str) -> "Call":
        """Returns the call of another function; InputError if it lacks a parameter given."""
        refuse(self.context, self.given.keys() - signature_of(function).keys(), problem)
        return self._replace(function=function)


class Output(NamedTuple):
    """Result of a command.

    Attributes:
        values: NamedTuple, dict or list; or an iterator of dicts. Printed by `--json`: an iterator
            as one line for each dict, as soon as there is one.
        lines: iterable of str. Printed otherwise.
        error: Exception or None. Raised after the result is printed.
    """

    values: Any
    lines: Iterable[str]
    error: Exception | None = None


def streamed(
    answers: Iterator, describe: Callable[[Any], Iterable[str]], as_list: bool = False
) -> Output:
    """Returns the Output of answers, each of which is printed as soon as there is one.

    Args:
        answers: Named tuples.
        describe: Returns the lines of an answer.
        as_list: Whether JSON is a list of all answers, not a line for each.
    """
    if as_list:
        found = list(answers)
        return Output(found, [line for one in found for line in describe(one)])
    # Only one of the two is consumed.
    return Output(answers, (line for one in answers for line in describe(one)))


def command(*calls: str, config=None, resumes: bool = False):
    """Decorates a function that returns an Output, or None, to make it a typer command.

    Its options are its own parameters, those of the functions that it calls and of the settings,
    see `parameters.py`, and --json, --log-format, --verbose and --debug.

    Args:
        calls: Functions as "module:name". The parameter `call` is the Call of the first one; the
            defaults are left to the functions.
        config: type or None. Settings; the values that were given of them are a dict, the
            parameter `flags`.
        resumes: Whether the command, repeated after Ctrl-C, resumes its work.
    """

    def decorate(function):
        own = inspect.signature(function).parameters
        text, entries = help_and_entries(function.__doc__)
        options = parameters_of(function, entries, config, calls)
        settings = () if config is None else options_of(config)
        flags = [one.name for one in options if one.name in settings and one.name not in own]
        derived = [one.name for one in options if one.name not in own and one.name not in flags]

        @functools.wraps(function)
        def run(context, as_json, log_format, verbose, debug, **arguments):
            start(verbose, debug, log_format, OptionNames(context, config).put_into)
            if config is not None:
                given = given_of(context, flags, arguments)
                arguments["flags"] = {
                    name: str(value) if isinstance(value, Path) else value
                    for name, value in given.items()
                }
            if calls:
                arguments["call"] = Call(context, calls[0], given_of(context, derived, arguments))
            if "context" in own:
                arguments["context"] = context
            with interruptible(resumes):
                output = function(**arguments)
                if output is None:
                    return
                show(output.values, output.lines, as_json)
            if output.error is not None:
                raise output.error

        kind = inspect.Parameter.KEYWORD_ONLY
        common = [
            inspect.Parameter(name, kind, default=default, annotation=Annotated[type_, option])
            for name, type_, default, option in _COMMON
        ]
        context = inspect.Parameter("context", kind, annotation=typer.Context)
        run.__signature__ = inspect.Signature([context, *options, *common])
        run.__doc__ = text
        return run

    return decorate
