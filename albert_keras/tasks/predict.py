"""Answers of fine-tuned models to new examples; no training file is needed."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.formats.detection import Place
from albert_keras.tasks.answer_table import (
    check_out,
    check_request,
    is_answer_table,
    write_answer_table,
    write_skipped_rows,
)
from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from albert_keras.tasks.task import Task, known_fields

#: Inputs that are answered at a time.
MOST_AT_A_TIME = 8192

logger = logging.getLogger(__name__)


class Predictions(NamedTuple):
    """Answers of a fine-tuned model: `rows`, `examples` and `answers` are in the same order."""

    task: str
    examples: list[Any]  # named tuples
    answers: list[Any]  # named tuples
    files: tuple[str, ...] = ()  # what was written
    rows: Sequence[dict[str, Any]] = ()  # the columns of the examples by name


def predict_task(
    model: Any,
    inputs: Iterable[str | dict] | str | dict | None = None,
    file: str | Path | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    out: str | Path | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool | None = None,
) -> Predictions:
    """Answers new examples with a fine-tuned model.

    Args:
        model: str or Path. Folder of a fine-tuning or of one of its runs, see `open_run`; or the
            Predictor of an export.
        inputs: list of dict of str or of str, or None. See `Task.typed_examples`.
        file: str, Path or None. Instead: a file with the columns of the training file; the answers
            may be missing.
        split: str or None. Instead: a split of the task's files, such as "test".
        data_dir: str, Path or None. Folder of these files; None takes the folder of the training.
        out: str, Path or None. Folder for the files of the task, of SQuAD the official ones; or
            a .csv or .jsonl with the columns of the examples and of their answers, see
            `write_answer_table`.
        encoding, skip_bad_rows: How to read `file`, if it differs from the training.
            Skipped rows have no example; they are listed in or beside `out`.

    Returns:
        Predictions.

    Raises:
        InputError: If not exactly one of `inputs`, `file` and `split` is given, or model and
            examples do not fit together.

    Example:
        predict_task("runs/sst-2", ["a gripping, funny film"]).answers[0].label
    """
    changes: dict[str, Any] = {"encoding": encoding, "skip_bad_rows": skip_bad_rows}
    check_request({"inputs": inputs, "file": file, "split": split}, data_dir, changes)
    check_out(out)
    changes["data_dir"] = data_dir and str(data_dir)
    if isinstance(model, str | Path | Place):
        run = open_run(model)
        task = task_of(run).changed(**changes)
        answer: Any = answering(task, open_finetuned(run, strategy="auto"))
    else:
        task, answer = model.task.changed(**changes), model.answers
    if file:
        examples, rows = task.read_rows(file)
    else:
        given = [inputs] if isinstance(inputs, str | dict) else list(inputs or ())
        examples = task.read(split) if split else task.typed_examples(given)
        rows = list(map(known_fields, examples))
    write_skipped_rows(out, task.skipped_rows)
    answers = list(noting_truncation(_answered(answer, examples)))
    files: tuple[str, ...] = ()
    if out is not None and is_answer_table(out):
        write_answer_table(out, rows, answers)
        files = (str(out),)
    elif out is not None:
        files = tuple(map(str, task.write(out, split or "new", examples, answers)))
    return Predictions(task.config.name, examples, answers, files, rows)


def answering(task: Task, model: Any) -> Callable[[list], list]:
    """Returns a function that answers examples of a task by an AlbertForTexts."""

    def answers(examples):
        ids = [example.id for example in examples]
        return model.answers(task.columns(examples), ids=ids)

    return answers


def _answered(answer, examples):
    """Yields the answers to examples, of which `MOST_AT_A_TIME` are answered at a time."""
    for begin in range(0, len(examples), MOST_AT_A_TIME):
        yield from answer(examples[begin : begin + MOST_AT_A_TIME])


def noting_truncation(answers: Iterable) -> Iterator:
    """Yields answers, and logs at the end how many inputs were not read completely."""
    count = truncated = 0
    for answer in answers:
        dropped = getattr(answer, "dropped_tokens", 0) + getattr(answer, "dropped_words", 0)
        count, truncated = count + 1, truncated + (dropped > 0)
        yield answer
    if truncated:
        logger.warning(
            "Truncated inputs: %s of %s. `dropped_tokens` or `dropped_words` of each answer "
            "counts what was not read.",
            f"{truncated:,}",
            f"{count:,}",
        )
