"""`albert-keras doctor`."""

from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.report import count_of, parse_bytes


@command()
def doctor(out: Path = Path("runs"), disk: str = "2GB"):
    """Check this machine: what works, what is missing, and the command that fixes it.

    Nothing is changed. The exit code is 1 if there is a fault.

    Example:
      albert-keras doctor --out runs/ --disk 50GB

    Args:
      out: Folder that runs will be written to.
      disk: Free space that the disk of this folder must have.
    """
    from albert_keras.machine.doctor import FAULT, OK, WARNING, examine

    findings, probe = examine(out, parse_bytes(disk, "--disk"))
    counts = {state: [one.state for one in findings].count(state) for state in (OK, WARNING, FAULT)}
    warnings, faults = count_of(counts[WARNING], "warning"), count_of(counts[FAULT], "fault")
    summary = f"{count_of(counts[OK], 'check')} passed, {warnings}, {faults}"
    lines = [line for finding in findings for line in finding.lines()]
    values = {
        "findings": findings,
        "counts": counts,
        "measured": probe,
    }
    error = typer.Exit(1) if counts[FAULT] else None
    return Output(values, [*lines, summary], error)
