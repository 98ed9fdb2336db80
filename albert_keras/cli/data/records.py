"""`albert-keras data inspect` and `verify`: commands on a folder of records."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.command import Output, command
from albert_keras.report import count_of
from data_pipeline.errors import InputError


@command()
def inspect(
    folder: Annotated[Path, Argument(metavar="RECORDS")],
    examples: Annotated[int, Option(min=1)] = 3,
):
    """Print the first records as pieces, with their masks.

    Example:
      albert-keras data inspect records/ --examples 5

    Args:
      folder: Folder of records.
      examples: Records to print.
    """
    from data_pipeline.reports.inspection import inspect_records

    found = inspect_records(folder, examples)
    return Output({"folder": folder, "examples": found}, _example_lines(found))


def _example_lines(examples):
    for number, example in enumerate(examples):
        padding = f", {count_of(example.padding, 'padding position')}" if example.padding else ""
        yield f"record {number}, order: {example.order}{padding}"
        yield from (f"  {segment}" for segment in example.segments)


@command()
def verify(records: Path):
    """Check every byte of the records and report all problems.

    Example:
      albert-keras data verify records/

    Args:
      records: Folder of records.
    """
    from data_pipeline.reports.inspection import verify_records

    found = verify_records(records)
    line = (
        f"no problems: {count_of(found.num_records, 'record')}, {found.num_bytes / 1e6:.1f} MB: "
        f"{found.folder}"
    )
    if not found.problems:
        return Output(found, [line])
    title = f"{count_of(len(found.problems), 'problem')} in `{found.folder}`:"
    return Output(found, [], InputError("\n  ".join([title, *found.problems])))
