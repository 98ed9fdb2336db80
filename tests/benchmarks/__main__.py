"""Measures speed and memory of the packages on this machine: `python -m tests.benchmarks NAME`.

README.md explains what is measured and what the numbers mean. Exit code 2: an option is not valid.
"""

import importlib
import inspect
import json
import logging
import sys
from collections.abc import Callable

import typer

from data_pipeline.errors import InputError

NAMES = ("data", "read", "train", "learn", "infer", "passes")


def command_of(measure: Callable, lines_of: Callable) -> Callable:
    """Returns a command with the parameters of `measure`, which prints its result.

    `lines_of` makes lines of the result; with `--json` the result is printed itself.
    """
    as_json = inspect.Parameter(
        "as_json",
        inspect.Parameter.KEYWORD_ONLY,
        default=typer.Option(False, "--json", help="Print all numbers as JSON."),
        annotation=bool,
    )

    def command(as_json, **settings):
        result = measure(**settings)
        typer.echo(json.dumps(result, indent=2) if as_json else "\n".join(lines_of(result)))

    parameters = [
        # Typer would take a parameter without a default for an argument without a name.
        one.replace(default=typer.Option(...)) if one.default is one.empty else one
        for one in inspect.signature(measure).parameters.values()
    ]
    parameters = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in [*parameters, as_json]
    ]
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = measure.__annotations__ | {"as_json": bool}
    command.__doc__ = measure.__doc__.partition("Returns:")[0].replace("Args:", "\b\nArgs:")
    return command


def main(arguments: list[str]) -> int:
    """Runs one benchmark; returns the exit code."""
    if not arguments or arguments[0] not in NAMES:
        print(f"usage: python -m tests.benchmarks {{{','.join(NAMES)}}} [--help]", file=sys.stderr)
        return 0 if arguments[:1] == ["--help"] else 2
    name, *words = arguments
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    module = importlib.import_module(f"tests.benchmarks.{name}")
    measure = getattr(module, f"benchmark_{name}")
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    app.command(name)(command_of(measure, getattr(module, f"{name}_lines")))
    try:
        app(words, prog_name=f"python -m tests.benchmarks {name}")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SystemExit as finished:
        return finished.code or 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
