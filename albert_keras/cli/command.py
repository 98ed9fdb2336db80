"""What all commands have in common: --json, --log-format, --verbose, --debug, and how they print a
result."""

import copy
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import typer
from typer import Option
from typer.models import OptionInfo

from albert_keras.cli.options import is_given, options_of_settings
from albert_keras.cli.output import show, start
from data_pipeline.files import naming

#: The errors that typer raises for unknown, missing and wrong options.
USAGE_ERRORS = typer.BadParameter.__mro__[1]
#: The end of the help of a command.
EPILOG = (
    "Every command: --json (the result), --log-format json (the messages), -v (more of them), "
    "--debug (tracebacks). Messages name options and settings as Python does: `batch_size` or "
    "`training.batch_size` is --batch-size."
)


class App(typer.Typer):
    """A typer application whose commands all end their help with `EPILOG`."""

    def __init__(self, **settings):
        super().__init__(rich_markup_mode=None, **settings)

    def command(self, *args, **settings):
        return super().command(*args, epilog=EPILOG, **settings)


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


def command(config=None, shown: str = ""):
    """Decorates a function that returns an Output, or None, to make it a typer command.

    The part `Args:` of its docstring has the help of its parameters. These are options, and --json,
    --log-format, --verbose and --debug are added; but a parameter `context` is the typer.Context,
    and `given` the options on the command line (dict), the defaults of the others being left to
    the functions of the library.

    Args:
        config: type or None. Settings whose options are in the place of the parameter `flags`,
            which is a dict of the values that were given of them.
        shown: Keywords of the settings in the help.
    """

    def decorate(function):
        text, _, described = inspect.cleandoc(function.__doc__ or "").partition("\nArgs:\n")
        helps = dict(re.findall(r"^  (\w+): (.+(?:\n    .+)*)", described, re.MULTILINE))
        parameters = inspect.signature(function).parameters
        own = [name for name in parameters if name not in ("context", "given", "flags")]

        def run(
            context: typer.Context,
            *,
            as_json: Annotated[bool, Option("--json", hidden=True)] = False,
            log_format: Annotated[Literal["text", "json"], Option(hidden=True)] = "text",
            verbose: Annotated[bool, Option("-v", "--verbose", hidden=True)] = False,
            debug: Annotated[bool, Option("--debug", hidden=True)] = False,
            **arguments,
        ):
            start(verbose, debug, log_format)
            given = {name: value for name, value in arguments.items() if is_given(context, name)}
            others = {
                "context": context,
                "given": {name: given[name] for name in own if name in given},
                "flags": {
                    name: str(value) if isinstance(value, Path) else value
                    for name, value in given.items()
                    if name not in own
                },
            }
            values = {name: others.get(name, arguments.get(name)) for name in parameters}
            output = function(**values)
            if output is None:
                return
            with naming("standard output"):
                show(output.values, output.lines, as_json)
            if output.error is not None:
                raise output.error

        context, *common, _ = inspect.signature(run).parameters.values()
        options = [_with_help(parameters[name], helps.get(name, "")) for name in own]
        if config is not None:
            place = [name for name in parameters if name in (*own, "flags")].index("flags")
            options[place:place] = options_of_settings(config, shown)
        run.__name__ = function.__name__
        run.__signature__ = inspect.Signature([context, *options, *common])
        # typer keeps the lines of a paragraph that begins with \b.
        run.__doc__ = re.sub(r"\n\n(?=[^\n]*:\n  )", "\n\n\b\n", text)
        return run

    return decorate


def _with_help(parameter, text):
    """Adds its help to a parameter, which is an argument if it has no option and no default.

    A flag that is off by default needs no opposite.
    """
    kind, how = parameter.annotation, None
    if get_origin(kind) is Annotated:
        kind, how = get_args(kind)
    if how is None:
        how = typer.Argument() if parameter.default is inspect.Parameter.empty else Option()
    how = copy.copy(how)
    how.help = how.help or " ".join(text.split())
    if not isinstance(how, OptionInfo):
        how.metavar = how.metavar or parameter.name.upper()
    elif kind is bool and parameter.default is False and not how.param_decls:
        how.param_decls = (f"--{parameter.name.replace('_', '-')}",)
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, how])
