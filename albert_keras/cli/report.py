"""`albert-keras report`."""

from pathlib import Path

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import argument, option


@command()
def report(
    run: Path = argument(..., "Folder of a run.", metavar="RUN"),
    data: Path | None = option(
        None,
        "Held-out records, whose masks a pre-trained model fills as samples.",
        shown="the records that were scored last",
    ),
    out: Path | None = option(
        None, "Page to write.", metavar="FILE.html", shown="report.html in the folder of the run"
    ),
    overwrite: bool = option(False, "Replace the file of --out if it exists.", "--overwrite"),
):
    """Write a page about a run: curves, scores and baselines, samples, data, settings, warnings.

    The page is one HTML file that opens in any browser without network.

    \b
    Example:
      albert-keras report runs/books --data records-heldout/
    """
    from albert_keras.run_overview.report.page import write_report

    path = write_report(run, out, data, overwrite)
    return Output({"path": path}, [f"report: {path}"])
