"""What all commands have in common: --json, --verbose, --debug, and how they print a result."""

import functools
import inspect
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import typer

from albert_keras.cli.config_options import given_values, parameters_of
from albert_keras.cli.interruption import interruptible
from albert_keras.cli.output import show, start

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Print more messages.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print tracebacks and all messages.")]


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

    The command has the parameters of the function and --json, --verbose and --debug.

    Args:
        config: type or None. Configuration whose options replace the parameter `flags`; the
            function receives there a dict of the values that were given.
        resumes: bool. Whether the command, repeated after Ctrl-C, resumes its work.
    """

    def decorate(function):
        own = inspect.signature(function).parameters

        @functools.wraps(function)
        def run(context, as_json, verbose, debug, **arguments):
            start(verbose, debug)
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
        parameters += [_parameter("as_json", Json, False), _parameter("verbose", Verbose, False)]
        parameters += [_parameter("debug", Debug, False)]
        run.__signature__ = inspect.Signature(parameters)
        return run

    return decorate


def _parameter(name, annotation, default=inspect.Parameter.empty):
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
