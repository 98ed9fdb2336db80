"""`albert-keras runs ...`."""

from pathlib import Path
from typing import Annotated

from typer import Argument

from albert_keras.cli.command import App, Output, command
from albert_keras.report import count_of, table

app = App(name="runs", help="List and describe runs.", no_args_is_help=True)


@app.command("list")
@command()
def list_runs(
    folder: Annotated[Path, Argument(metavar="[FOLDER]", show_default=False)] = Path("runs"),
):
    """List the runs of a folder and its subfolders, with their scores.

    Example:
      albert-keras runs list runs/

    Args:
      folder: Folder that contains runs.
    """
    from albert_keras.reports.overview import find_runs

    found = find_runs(folder)
    header = ("run", "kind", "model", "step", "score", "time")
    lines = table(header, map(_row, found), range(len(header)), 0) if found else []
    return Output(found, [*lines, f"{count_of(len(found), 'run')} in {folder}"])


@app.command()
@command()
def report(run: Path):
    """Write a page about a run: scores and baselines, curves, wrong answers, settings, warnings.

    The page, report.html in the folder of the run, opens in any browser without network. An older
    one is replaced.

    Example:
      albert-keras runs report runs/books

    Args:
      run: Folder of a run.
    """
    from albert_keras.reports.page import write_report

    path = write_report(run)
    return Output({"path": path}, [f"report: {path}"])


def _row(run):
    from data_pipeline.progress import format_duration

    steps = f"{run.step:,}" + (f"/{run.steps:,}" if run.steps not in (None, run.step) else "")
    score = "-" if run.score is None else f"{run.metric} {run.score:.3f}"
    time = format_duration(run.seconds) if run.seconds else "-"
    return run.path, run.kind, run.model or "-", steps, score, time
