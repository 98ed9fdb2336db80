"""Scores of fine-tuned models on labelled examples."""

from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_rows import TextRows
from albert_keras.runs.trained_data import ROWS, check_overlap, read_digests
from albert_keras.tasks.answer_files import write_answers
from albert_keras.tasks.answer_table import check_required, write_skipped_rows
from albert_keras.tasks.costs import ThresholdTable, threshold_tables
from albert_keras.tasks.example_source import digest_of
from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.results import (
    Row,
    Verdict,
    difference_text,
    formatter,
    interval_text,
    result_of,
    verdict_of,
)
from albert_keras.tasks.score_dev import score_splits
from albert_keras.tasks.task_data import digest_rows
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder


class TaskEvaluation(NamedTuple):
    """Scores on labelled examples."""

    run: str
    task: str
    split: str  # a split of the task, or the name of the file
    metric: str
    examples: int
    scores: dict[str, float]  # the main metric first
    interval: Interval  # 95 % bootstrap interval of the main metric
    #: Scores of the best constant answer on these examples.
    guessing: dict[str, float] | None
    collapse: str | None  # see `Task.collapse`
    thresholds: dict[str, float]  # see `Task.fit_thresholds`
    #: Whether they were fitted on these examples, which then determined the best checkpoint, too.
    #: For other examples, those of the training are used.
    has_own_thresholds: bool
    files: dict[str, Any] = {}  # what was written, see `write_answers`; never changed
    positive_class: str | None = None  # the class that the score `f1` refers to
    #: That of the fine-tuning. None without any baseline, and if a tenth of the examples or more
    #: were trained on.
    verdict: Verdict | None = None
    #: Fields of an `Overlap`: how many of the examples were trained on; None if it is unknown.
    overlap: dict[str, Any] | None = None
    #: Of the second of two classes, or of several labels.
    threshold_tables: tuple[ThresholdTable, ...] = ()

    def rows(self) -> list[Row]:
        """Returns the main score, and that of the best constant answer, as `results.rows`."""
        number, score = formatter(self.task), self.scores[self.metric]
        interval = interval_text(self.interval, number)
        found = [Row(self.split, "this model", number(score), interval)]
        if self.guessing is not None:
            guess = self.guessing[self.metric]
            difference = difference_text(score - guess, None, number)
            found.append(Row(self.split, "always the same answer", number(guess), "", difference))
        return found


def evaluate_task(
    model: str | Path,
    data: str | Path | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    out: str | Path | None = None,
    step: int | str | None = "best",
    batch_size: int = 64,
    strategy: str = "auto",
    encoding: str | None = None,
    skip_bad_rows: bool | None = None,
    allow_trained_rows: bool = False,
    miss_cost: float | None = None,
) -> TaskEvaluation:
    """Scores a fine-tuned model.

    Args:
        model: str or Path. Folder of a fine-tuning or of one of its runs, see `open_run`.
        data: str, Path or None. A labelled file in the format of the task.
        data_dir: str, Path or None. Folder of the official files; None means the training's.
        split: str or None. A split of these files; None is the split that determined the best
            checkpoint.
        out: str, Path or None. Folder for answers, errors and the confusion figure.
        step, strategy: See `open_finetuned`.
        batch_size: int. Rows per device and call.
        encoding, skip_bad_rows: How to read `data`, if not as in training.
        allow_trained_rows: bool. Whether to score examples that were all trained on. Without it
            they are an InputError, as their score is no estimate for new examples.
        miss_cost: float or None. How many wrong alarms one missed example of a label costs, for the
            threshold with the least cost; see `threshold_tables`.

    Returns:
        TaskEvaluation.

    Raises:
        InputError: If model and examples do not fit together, or all examples were trained on.

    Example:
        evaluate_task("runs/sst-2", data="reviews.tsv").scores["accuracy"]
    """
    if data is not None and (split is not None or data_dir is not None):
        other = "split" if split is not None else "data_dir"
        raise InputError(f"Only one of `data` and `{other}` may be given. Received: both.")
    changes = {"encoding": encoding, "skip_bad_rows": skip_bad_rows}
    check_required(changes, "data", data)
    if out is not None and not Path(out).is_dir():
        check_output_folder(Path(out))
    data_dir = None if data_dir is None else str(data_dir)
    opened = open_run(model)
    task = task_of(opened).changed(data_dir=data_dir, **changes)
    if data is not None:
        examples, split = task.read_file(data, labelled=True), Path(data).name
    else:
        split = split or task.dev_splits[0]
        if split in task.test_splits and split not in task.labelled_tests:
            raise InputError(
                f"`{split}` of {task.config.name} has no labels to score. To answer it, use "
                f"`albert-keras predict {opened.path} --split {split}`."
            )
        examples = task.read(split)
    trained, digests = read_digests(opened.path, ROWS), digest_rows(examples)
    overlap = check_overlap(trained, digests, ROWS, split, allow_trained_rows=allow_trained_rows)
    write_skipped_rows(out, task.skipped_rows)
    answering = open_finetuned(opened, step, strategy=strategy)
    known = answering.thresholds
    rows = TextRows(answering.preprocessor, task.columns(examples))
    predictor = RowPredictor.of_model(answering, batch_size)
    # A copy of the development file has the same examples under another name.
    is_dev = digest_of(examples) == opened.record["data"].get("dev_fingerprint")
    is_dev = is_dev or (data is None and split == task.dev_splits[0])
    has_own_thresholds = is_dev or not known
    thresholds = None if has_own_thresholds else known
    scored = score_splits(task, {split: (examples, rows)}, answering, predictor, thresholds)
    answers = scored.answers[split]
    guesses = task.guesses(examples, examples)  # a constant guess may know them
    result = None if overlap is not None and overlap.is_large else result_of(opened.path)
    verdict = result and verdict_of(result)
    if verdict is not None and not is_dev:
        verdict = verdict._replace(sentence=f"in the fine-tuning: {verdict.sentence}")
    return TaskEvaluation(
        run=str(opened.path),
        task=task.config.name,
        split=split,
        metric=task.metric,
        examples=len(examples),
        scores=scored.scores[split],
        interval=task.interval(examples, answers),
        guessing=None if guesses is None else task.scores(examples, guesses),
        collapse=scored.collapse,
        thresholds=scored.thresholds,
        has_own_thresholds=has_own_thresholds,
        files={} if out is None else write_answers(out, task, split, examples, answers),
        positive_class=task.positive_class,
        verdict=verdict,
        overlap=None if overlap is None else overlap._asdict(),
        threshold_tables=threshold_tables(task, examples, answers, miss_cost),
    )
