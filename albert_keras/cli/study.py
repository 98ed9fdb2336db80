"""`albert-keras runs study`."""

import enum

from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import Output, command
from albert_keras.research.study.config import SCALES

Scale = enum.Enum("Scale", {name: name for name in SCALES}, type=str)  # type: ignore[misc]


@command("albert_keras.research.study.study:study", resumes=True)
def study(
    arguments,
    name: str,
    scale: Scale = Scale.tiny,
    dry_run: bool = False,
    assignments: list[str] | None = None,
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

    Options:
      name <NAME|FILE>: Name of a study, or a YAML file.
      corpus
      out: Folder of the study; an interrupted study is resumed.
      scale: Model, lengths and updates to start from.
      minutes {0.01..} (updates of the scale): Minutes of training for each run and seed, which
        determine the number of updates.
      seeds {1..} (the seeds of the study): Number of seeds of each run.
      eval_corpus PATH (a tenth of the documents of the corpus): Held-out text file, folder or
        'glob'; may be repeated.
      corpus_format
      workers {1..} (chosen by corpus size): Number of processes that build records.
      dry_run: Report the runs and the estimated time and disk space; keep nothing.
      assignments
    """
    from albert_keras.research.study.config import read_study
    from albert_keras.research.study.planned import plan_study
    from data_pipeline.text.text_files import find_files

    read = read_study(name)
    changes = read_values(None, assignments)
    planned = plan_study(read, scale.value, changes)
    for texts in ("corpus", "eval_corpus"):  # before TensorFlow is loaded
        if texts in arguments:
            find_files(arguments[texts])
    if dry_run:
        from albert_keras.research.study.updates import cost_lines, study_cost

        seeds = arguments.get("seeds", read.seeds)
        cost = study_cost(planned, arguments.get("minutes"), seeds)
        return Output(cost, cost_lines(cost))
    from albert_keras.research.study.study import study as run_study

    result = run_study(read, scale=scale.value, changes=changes, **arguments)
    return Output(result, _lines(result))


def _lines(result):
    yield f"{result.trainings} trainings are finished, {result.trained_here} by this command"
    yield f"report: {result.report}"
