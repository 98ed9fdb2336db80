"""`albert-keras study`."""

import enum
from pathlib import Path

from albert_keras.cli import options
from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import argument, option
from albert_keras.research.study.config import SCALES

Scale = enum.Enum("Scale", {name: name for name in SCALES}, type=str)  # type: ignore[misc]


@command(resumes=True)
def study(
    name: str = argument(..., "Name of a study, or a YAML file.", metavar="NAME|FILE"),
    corpus: list[str] = options.CORPUS,
    out: Path = option(..., "Folder of the study; an interrupted study is resumed."),
    scale: Scale = option("tiny", "Model, lengths and updates to start from."),
    minutes: float | None = option(
        None,
        "Minutes of training for each run and seed, which determine the number of updates.",
        min=0.01,
        shown="updates of the scale",
    ),
    seeds: int | None = option(
        None, "Number of seeds of each run.", min=1, shown="the seeds of the study"
    ),
    eval_corpus: list[str] | None = option(
        None,
        "Held-out text file, folder or 'glob'; may be repeated.",
        metavar="PATH",
        shown="a tenth of the documents of the corpus",
    ),
    corpus_format: str = options.CORPUS_FORMAT,
    workers: int | None = option(
        None, "Number of processes that build records.", min=1, shown="chosen by corpus size"
    ),
    dry_run: bool = option(
        False, "Report the runs and the estimated time and disk space; keep nothing.", "--dry-run"
    ),
    assignments: list[str] | None = options.SET,
):
    """Compare runs that differ in a few settings, such as the runs in a table of a paper.

    \b
    Studies: batch-size, depth, distillation-losses, dropout, embedding-size, equal-time,
    input-format, masking, more-data, ngram-masking, positions, sentence-task, sharing,
    width.
    \b
    Examples:
      albert-keras study sentence-task --corpus books/ --eval-corpus heldout/ --dry-run \\
          --out studies/sentence-task
      albert-keras study sentence-task --corpus books/ --eval-corpus heldout/ --minutes 10 \\
          --out studies/sentence-task
    """
    from albert_keras.research.study.config import read_study
    from albert_keras.research.study.planned import plan_study
    from data_pipeline.text.text_files import find_files

    read = read_study(name)
    changes = read_values(None, assignments)
    planned = plan_study(read, scale.value, changes)
    find_files(corpus)  # before TensorFlow is loaded
    if eval_corpus:
        find_files(eval_corpus)
    if dry_run:
        from albert_keras.research.study.cost import cost_lines, study_cost

        cost = study_cost(
            planned, corpus, eval_corpus or (), corpus_format, minutes, seeds or read.seeds
        )
        return Output(cost, cost_lines(cost))
    from albert_keras.research.study.study import study as run_study

    result = run_study(
        read,
        corpus,
        out,
        scale=scale.value,
        minutes=minutes,
        seeds=seeds,
        eval_corpus=eval_corpus or (),
        corpus_format=corpus_format,
        changes=changes,
        workers=workers,
    )
    return Output(result, _lines(result))


def _lines(result):
    yield (
        f"{result.finished} of {result.trainings} trainings are finished, {result.trained_here} of "
        "them by this command"
    )
    if result.in_use:
        yield (
            "other processes are working on these, or on their teachers: "
            f"{'; '.join(result.in_use)}; the last process to finish writes the complete report"
        )
    yield f"report: {result.report}"
