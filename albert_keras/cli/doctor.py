"""`albert-keras doctor`."""

from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import option
from albert_keras.cli.output import count_of, plain, printable


@command()
def doctor(
    out: Path = option(Path("runs"), "Folder that runs will be written to."),
    disk: str = option("2GB", "Free space that the disk of this folder must have."),
):
    """Check this machine: what works, what is missing, and the command that fixes it.

    Nothing is changed. The exit code is 1 if there is a fault.

    \b
    Example:
      albert-keras doctor --out runs/ --disk 50GB
    """
    from albert_keras.doctor.examine import examine
    from albert_keras.doctor.findings import FAULT, OK, WARNING
    from albert_keras.planning.sizes import parse_bytes

    seen = examine(out, parse_bytes(disk, "--disk"))
    counts = {state: seen.count(state) for state in (OK, WARNING, FAULT)}
    warnings, faults = count_of(counts[WARNING], "warning"), count_of(counts[FAULT], "fault")
    summary = f"{count_of(counts[OK], 'check')} passed, {warnings}, {faults}"
    lines = [line for finding in seen.findings for line in finding.lines()]
    values = {
        "findings": [plain(finding) for finding in seen.findings],
        "counts": counts,
        "measured": plain(seen.probe),
    }
    error = typer.Exit(1) if seen.has_faults else None
    return Output(values, map(printable, [*lines, summary]), error)
