"""`albert-keras runs ...`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import Assignments, Corpus, CorpusFormat
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
    from albert_keras.runs.overview import find_runs

    found = find_runs(folder)
    header = ("run", "kind", "model", "step", "score", "time")
    lines = table(header, map(_row, found), range(len(header)), 0) if found else []
    return Output(found, [*lines, f"{count_of(len(found), 'run')} in {folder}"])


@app.command()
@command()
def report(
    run: Path,
    out: Annotated[
        Path | None,
        Option(metavar="FILE.html", show_default="report.html in the folder of the run"),
    ] = None,
    overwrite: bool = False,
):
    """Write a page about a run: scores and baselines, curves, wrong answers, settings, warnings.

    The page is one HTML file that opens in any browser without network.

    Example:
      albert-keras runs report runs/books

    Args:
      run: Folder of a run.
      out: Page to write.
      overwrite: Replace the file of --out if it exists.
    """
    from albert_keras.runs.report.page import write_report

    path = write_report(run, out, overwrite)
    return Output({"path": path}, [f"report: {path}"])


@app.command()
@command(resumes=True)
def study(
    name: Annotated[str, Argument(metavar="NAME|FILE")],
    corpus: Corpus,
    out: Annotated[Path, Option()],
    scale: Annotated[str, Option(metavar="[tiny|mini|paper]")] = "tiny",
    minutes: Annotated[float | None, Option(show_default="updates of the scale", min=0.01)] = None,
    seeds: Annotated[int | None, Option(show_default="the seeds of the study", min=1)] = None,
    eval_corpus: Annotated[
        list[Path] | None, Option(show_default="a tenth of the documents of the corpus")
    ] = None,
    corpus_format: CorpusFormat = "auto",
    language: Annotated[str | None, Option(show_default="en")] = None,
    workers: Annotated[int | None, Option(show_default="chosen by corpus size", min=1)] = None,
    dry_run: bool = False,
    assignments: Assignments = None,
):
    """Compare runs that differ in a few settings, such as the runs in a table of a paper.

    \b
    Studies: batch-size, depth, distillation-losses, dropout, embedding-size, equal-time,
    input-format, masking, more-data, ngram-masking, positions, sentence-task, sharing,
    width.

    Examples:
      albert-keras runs study sentence-task --corpus books/ --eval-corpus heldout/ --dry-run \\
          --out studies/sentence-task
      albert-keras runs study sentence-task --corpus books/ --eval-corpus heldout/ --minutes 10 \\
          --out studies/sentence-task

    Args:
      name: Name of a study, or a YAML file.
      out: Folder of the study; an interrupted study is resumed.
      scale: Model, lengths and updates to start from.
      minutes: Minutes of training for each run and seed, which determine the number of updates.
      seeds: Number of seeds of each run.
      eval_corpus: Held-out text file, folder or 'glob'; may be repeated.
      language: Language code of both texts.
      workers: Number of processes that build records.
      dry_run: Report the runs and the estimated time and disk space; keep nothing.
    """
    from albert_keras.research.study.config import read_study
    from albert_keras.research.study.planned import plan_study
    from data_pipeline.text.text_files import find_files

    read = read_study(name)
    changes = read_values(None, assignments)
    planned = plan_study(read, scale, changes, language)
    for texts in (corpus, eval_corpus):  # before TensorFlow is loaded
        if texts:
            find_files(texts)
    if dry_run:
        from albert_keras.research.study.updates import cost_lines, study_cost

        cost = study_cost(planned, minutes, read.seeds if seeds is None else seeds)
        return Output(cost, cost_lines(cost))
    from albert_keras.research.study.study import study as run_study

    texts = {"eval_corpus": eval_corpus or (), "corpus_format": corpus_format, "language": language}
    result = run_study(
        *(read, corpus, out, scale, minutes, seeds), changes=changes, workers=workers, **texts
    )
    lines = [
        f"{result.trainings} trainings are finished, {result.trained_here} by this command",
        f"report: {result.report}",
    ]
    return Output(result, lines)


def _row(run):
    from data_pipeline.progress import format_duration

    steps = f"{run.step:,}" + (f"/{run.steps:,}" if run.steps not in (None, run.step) else "")
    score = "-"
    if run.score is not None:
        score = f"{run.metric} {run.score:.3f}" + ("" if run.is_held_out else " (training)")
    time = format_duration(run.seconds) if run.seconds else "-"
    if run.time_budget is not None and not run.is_finished:
        time += f"/{format_duration(run.time_budget)}"
    return run.path, run.kind, run.model or "-", steps, score, time
