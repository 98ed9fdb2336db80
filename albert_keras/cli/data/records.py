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
    examples: Annotated[int, Option(min=0)] = 3,
    seed: Annotated[int, Option(min=0)] = 0,
    sample: Annotated[int, Option(min=1)] = 2000,
):
    """Print statistics of a random sample, and examples as text.

    Example:
      albert-keras data inspect records/ --examples 5

    Args:
      folder: Folder of records.
      examples: Records to print as text.
      seed: Random seed of the sample.
      sample: Records in the random sample.
    """
    from data_pipeline.reports.inspection import inspect_records

    seen = inspect_records(folder, examples, seed, sample)
    return Output(seen, _inspection_lines(seen))


def _inspection_lines(seen):
    yield f"{count_of(seen.num_records, 'record')}, sample of {seen.num_sampled}: {seen.folder}"
    yield from (f"  {name:19}  {text}" for name, text in seen.findings())
    for example in seen.examples:
        yield ""
        padding = f", {count_of(example.padding, 'padding position')}" if example.padding else ""
        yield f"record {example.record}, order: {example.order}{padding}"
        for segment in example.segments:
            yield f"  {segment}"


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
    speed = found.num_bytes / 1e6 / max(found.seconds, 1e-9)
    line = (
        f"no problems: {count_of(found.num_records, 'record')} in "
        f"{count_of(found.num_shards, 'shard')}, "
        f"{found.num_bytes / 1e6:.1f} MB at {speed:.0f} MB/s: {found.folder}"
    )
    if not found.problems:
        return Output(found, [line])
    title = f"{count_of(len(found.problems), 'problem')} in `{found.folder}`:"
    return Output(found, [], InputError("\n  ".join([title, *map(str, found.problems)])))
