"""What all commands have in common: --json, --log-format, --verbose, --debug, how they print a
result, and that an option with one value is given once."""

import functools
import inspect
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import typer
import typer.core

from albert_keras.cli.config_options import given_values, parameters_of
from albert_keras.cli.interruption import interruptible
from albert_keras.cli.output import show, start
from albert_keras.cli.removed import check_removed
from albert_keras.cli.usage_errors import values_of
from data_pipeline.errors import InputError, Mistake

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print more messages.")]
LogFormat = Annotated[
    str,
    typer.Option(
        "--log-format",
        help="Print progress and errors on stderr as text, or as JSON with one object per line.",
        metavar="[text|json]",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Print tracebacks and all messages.")]


class _GivenOnce:
    """Refuses an option with one value that is given twice; click would silently take the last."""

    def parse_args(self, ctx, args):
        if ctx.resilient_parsing:  # completes a command that is not finished
            return super().parse_args(ctx, args)
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for parameter in dict.fromkeys(given):
            if parameter.param_type_name == "option" and not parameter.multiple:
                _check_given_once(parameter, args, given.count(parameter))
        return super().parse_args(ctx, args)


class _Command(_GivenOnce, typer.core.TyperCommand):
    def parse_args(self, ctx, args):
        options = args[: args.index("--")] if "--" in args else args
        check_removed(ctx.command_path, options)
        return super().parse_args(ctx, args)


class _Group(_GivenOnce, typer.core.TyperGroup):
    def resolve_command(self, ctx, args):
        check_removed(ctx.command_path, args[:1])
        return super().resolve_command(ctx, args)


class App(typer.Typer):
    """A typer application; all of its commands refuse options with one value given twice."""

    def __init__(self, **settings):
        super().__init__(cls=_Group, **settings)

    def command(self, *args, cls=_Command, **settings):
        return super().command(*args, cls=cls, **settings)


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


def command(config=None, resumes=False):
    """Decorates a function that returns an Output, or None, to make it a typer command.

    The command has the parameters of the function and --json, --log-format,
    --verbose and --debug.

    Args:
        config: type or None. Configuration whose options replace the parameter `flags`; the
            function receives there a dict of the values that were given.
        resumes: bool. Whether the command, repeated after Ctrl-C, resumes its work.
    """

    def decorate(function):
        own = inspect.signature(function).parameters

        @functools.wraps(function)
        def run(context, as_json, log_format, verbose, debug, **arguments):
            start(verbose, debug, log_format)
            if config is not None:
                arguments["flags"] = given_values(config, context, arguments)
            if "context" in own:
                arguments["context"] = context
            with interruptible(resumes):
                output = function(**arguments)
                if output is None:
                    return
                show(output.values, output.lines, as_json)
            if output.error is not None:
                raise output.error

        parameters = [_parameter("context", typer.Context)]
        for name, parameter in own.items():
            if name == "flags" and config is not None:
                parameters += parameters_of(config)
            elif name != "context":
                parameters.append(_parameter(name, parameter.annotation, parameter.default))
        parameters += [
            _parameter("as_json", Json, False),
            _parameter("log_format", LogFormat, "text"),
            _parameter("verbose", Verbose, False),
            _parameter("debug", Debug, False),
        ]
        run.__signature__ = inspect.Signature(parameters)
        return run

    return decorate


def _check_given_once(option, args, times):
    """Raises InputError if an option has two values, or a flag is both set and unset."""
    names = (*option.opts, *option.secondary_opts)
    if option.is_flag:
        values = [arg for arg in dict.fromkeys(args) if arg in names]
    else:
        values = values_of(names, args)
        values = values if len(values) == times else ["a value"] * times
    if times > 1 and len(values) > 1:
        name = max(option.opts, key=len)
        raise InputError(
            f"`{name}` must be given at most once. Received: {' and '.join(values)}. "
            "Remove all but one.",
            Mistake.GIVEN_TWICE,
        )


def _parameter(name, annotation, default=inspect.Parameter.empty):
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
