"""`albert-keras evaluate`."""

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from albert_keras.cli.arguments import check_files, check_records
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import DataDir, Encoding, SkipBadRows, Step, refuse
from albert_keras.formats.detection import detect, read_export_record
from albert_keras.report import count_of, table
from data_pipeline.errors import InputError

#: Kinds of models that are evaluated on records or examples.
_KINDS = ("run", "fine-tuning", "export")
_WANTED = (
    "It must be the folder of a run or a fine-tuning, or an export. Create one with "
    "`albert-keras pretrain` or `finetune`."
)
#: The options for examples alone.
_OF_EXAMPLES = ("split", "data_dir", "out", "encoding", "skip_bad_rows", "miss_cost")


@command()
def evaluate(
    context: Context,
    given,
    run: Annotated[Path, Option()],
    data: Annotated[Path | None, Option(show_default="development examples")] = None,
    split: Annotated[str | None, Option(show_default="dev")] = None,
    data_dir: DataDir = None,
    out: Path | None = None,
    step: Step = None,
    batch_size: Annotated[int, Option(min=1)] = 64,
    strategy: Annotated[
        str, Option(metavar="[auto|tpu|mirrored|multiworker|single]", hidden=True)
    ] = "auto",
    encoding: Encoding = None,
    skip_bad_rows: SkipBadRows = None,
    allow_trained_rows: bool = False,
    miss_cost: Annotated[float | None, Option(min=0, metavar="NUMBER")] = None,
):
    """Evaluate a model on held-out records or examples, compared with guessing.

    A file of examples is read as in training; --encoding and --skip-bad-rows change that.

    Examples:
      albert-keras evaluate --run runs/books --data records-heldout/
      albert-keras evaluate --run runs/sst-2 --out scores/

    Args:
      run: Folder of a run, a fine-tuning or a pre-trained export; or the name of a shipped model.
      data: Held-out records, or a labelled file of the task.
      split: Split of the official files of the task.
      out: Folder for predictions, errors and a figure.
      batch_size: Rows per batch.
      strategy: Distribution strategy.
      allow_trained_rows: Score examples or records even if the model was trained on all of them.
      miss_cost: Find the thresholds at which errors cost least, if one missed example of a label
        costs as much as this number of wrong alarms.
    """
    del given["run"]
    place = detect(run, _KINDS, _WANTED)
    if place.run_kind == "finetuning":
        if split is None and data_dir is None:
            check_files(data)
        from albert_keras.tasks.evaluate import evaluate_task

        result = evaluate_task(place, **given)
        return Output(result, describe_task(result))
    if place.kind == "export" and read_export_record(place.path).get("task"):
        raise InputError(
            f"`{run}` is the export of a fine-tuned model, which `evaluate` does not score. Give "
            f"its fine-tuning as `run`, or answer a file with `albert-keras predict {run} --file "
            "FILE`."
        )
    refuse(context, _OF_EXAMPLES, "must not be given with a pre-trained model.")
    if data is None:
        raise InputError(
            "`data` is required for a pre-trained model: a folder of records that were not used "
            "for its training."
        )
    check_records(data)
    from albert_keras.training.evaluate import evaluate as evaluate_on_records

    result = evaluate_on_records(place, **given)
    return Output(result, describe(result))


def describe_task(evaluation):
    """Returns the lines that describe a TaskEvaluation, list of str."""
    from albert_keras.runs.trained_data import ROWS, Overlap
    from albert_keras.tasks.metrics import count_caution, thresholds_text
    from albert_keras.tasks.results import other_lines, score_lines

    task, metric, count = evaluation.task, evaluation.metric, evaluation.examples
    overlap = Overlap.of(evaluation.overlap)
    lines = score_lines(task, metric, count, evaluation.rows())
    if overlap and overlap.is_total:
        lines[0] += ", training scores"
    lines += other_lines(evaluation.scores, metric, evaluation.positive_class, task)
    if evaluation.thresholds:
        where = "on the same examples" if evaluation.has_own_thresholds else "in training"
        lines.append(f"  thresholds fitted {where}: {thresholds_text(evaluation.thresholds)}")
    lines += threshold_lines(evaluation.threshold_tables)
    if overlap and overlap.normalised:
        lines.append(f"  {overlap.sentence(ROWS)}")
    caution = count_caution(count, metric, "evaluated set")
    lines += [f"warning: {text}" for text in (caution, evaluation.collapse) if text]
    if evaluation.verdict:
        lines.append(evaluation.verdict.sentence)
    files = evaluation.files
    if files:
        shown_files = [f"{name}: {files[name]}" for name in files if name != "answers"]
        lines += ["   ".join(shown_files), f"answers: {', '.join(files['answers'])}"]
    return lines


def threshold_lines(tables):
    """Returns a table with precision and recall of each ThresholdTable, list of str."""
    if not tables:
        return []

    def cell(row):
        return f"{row.precision:.2f} {row.recall:.2f}"

    header = ["precision, recall from", *(f"{row.threshold:g}" for row in tables[0].rows[::2])]
    rows = [[one.label, *map(cell, one.rows[::2])] for one in tables]
    if tables[0].cheapest is not None:
        header.append("least cost")
        for row, one in zip(rows, tables, strict=True):
            row.append(f"{cell(one.cheapest)} from {one.cheapest.threshold:.3f}")
    return table(header, rows)


def describe(evaluation):
    """Returns the lines that describe an Evaluation, list of str."""
    from albert_keras.reports.tables import EVALUATION_HEADER, evaluation_rows
    from albert_keras.runs.learned_context import context_verdict
    from albert_keras.runs.trained_data import RECORDS, Overlap

    overlap, scores = Overlap.of(evaluation.overlap), evaluation._asdict()
    kind = "training score: " if overlap and overlap.is_total else ""
    kind += "" if evaluation.step is None else f"step {evaluation.step}, "
    is_better, verdict = context_verdict(scores)
    lines = [
        f"{kind}{count_of(evaluation.num_records, 'record')}, "
        f"{count_of(evaluation.num_predictions, 'masked token')}",
        *table(EVALUATION_HEADER, evaluation_rows(scores)),
        verdict if is_better else f"warning: {verdict}",
    ]
    if overlap is None:
        lines.append("it is unknown whether the model was trained on these records")
    elif overlap.normalised:
        lines.append(overlap.sentence(RECORDS))
    return lines
