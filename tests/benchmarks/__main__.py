"""Measures speed and memory of the packages on this machine: `python -m tests.benchmarks NAME`.

README.md explains what is measured and what the numbers mean. Exit code 2: an option is not valid.
"""

import inspect
import logging
import sys

import typer

from data_pipeline.errors import InputError
from tests.benchmarks.learn import learn
from tests.benchmarks.train import train


def main(arguments: list[str] | None = None) -> int:
    """Runs one benchmark, whose options are the parameters of its function; returns the code."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    for benchmark in (train, learn):
        text = inspect.getdoc(benchmark).replace("Args:", "\b\nArgs:")
        app.command(help=text)(benchmark)
    try:
        app(arguments, prog_name="python -m tests.benchmarks")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except SystemExit as finished:
        return finished.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
