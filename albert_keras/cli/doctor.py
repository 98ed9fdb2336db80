"""`albert-keras doctor`."""

import typer

from albert_keras.cli.command import Output, command
from albert_keras.report import count_of


@command()
def doctor():
    """Check this machine: versions, memory, devices and precision, and the command that fixes each.

    Nothing is changed. The exit code is 1 if there is a fault.

    Example:
      albert-keras doctor
    """
    from albert_keras.machine.doctor import FAULT, OK, WARNING, examine

    findings = examine()
    counts = {state: [one.state for one in findings].count(state) for state in (OK, WARNING, FAULT)}
    warnings, faults = count_of(counts[WARNING], "warning"), count_of(counts[FAULT], "fault")
    summary = f"{count_of(counts[OK], 'check')} passed, {warnings}, {faults}"
    lines = [line for finding in findings for line in finding.lines()]
    error = typer.Exit(1) if counts[FAULT] else None
    return Output({"findings": findings, "counts": counts}, [*lines, summary], error)
