"""Measures speed and memory of the packages on this machine: `python -m tests.benchmarks NAME`.

README.md explains what is measured and what the numbers mean. Exit code 2: an option is not valid.
"""

import functools
import importlib
import inspect
import json
import logging
import sys

import typer

from data_pipeline.errors import InputError

NAMES = ("train", "learn", "passes")


def main(arguments: list[str]) -> int:
    """Runs one benchmark; returns the exit code.

    Its options are the parameters of its function. With `--json` the result is printed itself.
    """
    if not arguments or arguments[0] not in NAMES:
        usage = f"usage: python -m tests.benchmarks {{{','.join(NAMES)}}} [--help] [--json]"
        print(usage, file=sys.stderr)
        return 0 if arguments[:1] == ["--help"] else 2
    name, *words = arguments
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    module = importlib.import_module(f"tests.benchmarks.{name}")
    measure, results = getattr(module, f"benchmark_{name}"), []

    @functools.wraps(measure)  # with the parameters, of which typer makes options
    def command(**settings):
        results.append(measure(**settings))

    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    text = inspect.getdoc(measure).partition("Returns:")[0].replace("Args:", "\b\nArgs:")
    app.command(name, help=text)(command)
    try:
        given = [word for word in words if word != "--json"]
        app(given, prog_name=f"python -m tests.benchmarks {name}")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SystemExit as finished:
        if finished.code:
            return finished.code
    for result in results:
        lines = getattr(module, f"{name}_lines")(result)
        print(json.dumps(result, indent=2) if "--json" in words else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
