"""`albert-keras data verify`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def verify(
    records: Annotated[Path, typer.Argument(help="Folder of records.", show_default=False)],
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Check every byte of a folder of records: all that is wrong with it, or that it is sound.

    \b
    Example:
      albert-keras data verify records/
    """
    start(verbose, debug)
    from data_pipeline.errors import InputError
    from data_pipeline.reports.verification import verify_records

    found = verify_records(records)
    if as_json or not found.problems:
        speed = found.num_bytes / 1e6 / max(found.seconds, 1e-9)
        show(
            found._asdict() | {"problems": [problem._asdict() for problem in found.problems]},
            [
                f"all is well: {found.num_records} records in {found.num_shards} shards, "
                f"{found.num_bytes / 1e6:.1f} MB at {speed:.0f} MB/s: {found.folder}"
            ],
            as_json,
        )
    if found.problems:
        count = f"{len(found.problems)} problem{'s' if len(found.problems) > 1 else ''}"
        lines = [f"  {problem}" for problem in found.problems]
        raise InputError("\n".join([f"FAILED: {count} in `{found.folder}`:", *lines]))
