"""`albert-keras runs ...`."""

import json
from pathlib import Path

from albert_keras.cli.command import App, Output, command
from albert_keras.cli.output import plain
from albert_keras.cli.study import study
from albert_keras.report import bytes_text, count_of, shortened, table

app = App(name="runs", help="List, compare and describe runs.", no_args_is_help=True)

_LONGEST_VALUE = 40


@app.command("list")
@command()
def list_runs(folder: Path = Path("runs")):
    """List the runs of a folder and its subfolders, with their scores and sizes.

    Example:
      albert-keras runs list runs/

    Options:
      folder <[FOLDER]>: Folder that contains runs.
    """
    from albert_keras.runs.overview import find_runs

    found = find_runs(folder)
    total = bytes_text(sum(run.bytes for run in found))
    header = ("run", "kind", "model", "what it is", "step", "score", "time", "disk")
    lines = table(header, map(_row, found), range(len(header)), 0) if found else []
    summary = f"{count_of(len(found), 'run')} in {folder}, {total}"
    return Output([plain(run) for run in found], [*lines, summary])


@app.command()
@command()
def compare(runs: list[Path]):
    """Show the settings in which runs differ, and their final scores.

    Example:
      albert-keras runs compare runs/a runs/b

    Options:
      runs <RUN>: Folders of runs.
    """
    from albert_keras.runs.overview import compare_runs

    seen = compare_runs(runs)
    rows = [("setting", *seen.runs)]
    rows += [(name, *map(_shown, values)) for name, values in seen.settings.items()]
    scores = [("score", *seen.runs)]
    scores += [
        (name, *("-" if value is None else f"{value:.4f}" for value in values))
        for name, values in seen.scores.items()
    ]
    settings = (
        table((), rows, range(len(rows[0])), 0) if seen.settings else ["all settings are equal"]
    )
    return Output(seen, [*settings, "", *table((), scores, range(len(scores[0])), 0)])


@app.command()
@command("albert_keras.runs.report.page:write_report")
def report(arguments):
    """Write a page about a run: curves, scores and baselines, samples, data, settings, warnings.

    The page is one HTML file that opens in any browser without network.

    Example:
      albert-keras runs report runs/books --data records-heldout/

    Options:
      run <RUN>: Folder of a run.
      data (the records that were scored last): Held-out records, whose masks a pre-trained model
        fills as samples.
      out FILE.html (report.html in the folder of the run): Page to write.
      overwrite
    """
    from albert_keras.runs.report.page import write_report

    path = write_report(**arguments)
    return Output({"path": path}, [f"report: {path}"])


app.command()(study)


def _row(run):
    from data_pipeline.progress import format_duration

    steps = f"{run.step:,}" + (f"/{run.steps:,}" if run.steps not in (None, run.step) else "")
    score = "-"
    if run.score is not None:
        score = f"{run.metric} {run.score:.3f}" + ("" if run.is_held_out else " (training)")
    time = format_duration(run.seconds) if run.seconds else "-"
    if run.time_budget is not None and not run.is_finished:
        time += f"/{format_duration(run.time_budget)}"
    return (
        run.path,
        run.kind,
        run.model or "-",
        run.shape or "-",
        steps,
        score,
        time,
        bytes_text(run.bytes),
    )


def _shown(value):
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
    return shortened(text, _LONGEST_VALUE)
