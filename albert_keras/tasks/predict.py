"""Answers of fine-tuned models to new examples; no training file is needed."""

import itertools
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.tasks.answer_table import (
    check_out,
    columns_of,
    is_answer_table,
    write_answer_table,
    write_skipped_rows,
)
from albert_keras.tasks.finetuned import FinetunedModels
from albert_keras.tasks.request_checks import check_request
from albert_keras.tasks.task import known_fields

#: Inputs that are answered at a time.
MOST_AT_A_TIME = 256

logger = logging.getLogger(__name__)


class Predictions(NamedTuple):
    """Answers of fine-tuned models: `examples` and `answers` are named tuples in the same order."""

    task: str
    examples: list[Any]
    answers: list[Any]
    files: tuple[str, ...] = ()  # what was written


def predict_task(
    runs: str | Path | Sequence[str | Path],
    inputs: Iterable[str | dict] | str | dict | None = None,
    file: str | Path | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    out: str | Path | None = None,
    all_seeds: bool = False,
    step: int | str | None = "best",
    batch_size: int = 64,
    strategy: str = "auto",
    text: str | int | None = None,
    pair: str | int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool | None = None,
    overwrite: bool = False,
) -> Predictions:
    """Answers new examples with fine-tuned models; the predictions of several are averaged.

    Args:
        runs: str, Path or sequence of them. See `FinetunedModels`.
        inputs: list of dict of str or of str, or None. See `FinetunedModels.examples`.
        file: str, Path or None. Instead: a file in the format of the task, without answers.
        split: str or None. Instead: a split of the task's files, such as "test".
        data_dir: str, Path or None. Folder of these files; None takes the folder of the training.
        out: str, Path or None. Folder for the task's official files, as leaderboards take them; or
            a .csv or .jsonl with the columns of the examples and of their answers, see
            `write_answer_table`.
        all_seeds, step, batch_size, strategy: See `FinetunedModels`.
        text, pair: str, int or None. Columns of `file`, if they differ from the training.
        delimiter, encoding, skip_bad_rows: How to read `file`, if it differs from the training.
            Skipped rows have no example; they are listed in or beside `out`.
        overwrite: bool. Whether an existing .csv or .jsonl `out` is replaced.

    Returns:
        Predictions.

    Raises:
        InputError: If not exactly one of `inputs`, `file` and `split` is given, or models and
            examples do not fit together.

    Example:
        predict_task("runs/sst-2", ["a gripping, funny film"]).answers[0].label
    """
    changes: dict[str, Any] = {
        "text": text,
        "pair": pair,
        "delimiter": delimiter,
        "encoding": encoding,
        "skip_bad_rows": skip_bad_rows,
    }
    check_request({"inputs": inputs, "file": file, "split": split}, data_dir, changes)
    check_out(out, file, overwrite)
    changes["data_dir"] = data_dir and str(data_dir)
    models = FinetunedModels(runs, all_seeds, step, strategy, batch_size, **changes)
    task = models.task
    columns: list[dict[str, Any]] | None = None
    if inputs:
        examples = models.examples([inputs] if isinstance(inputs, str | dict) else list(inputs))
    elif file:
        examples, columns = task.read_rows(file)
    else:
        examples = task.read(split)
    write_skipped_rows(out, task.skipped_rows)
    answers = models.answers(examples)
    truncated = Truncation()
    truncated.add(answers)
    truncated.warn()
    files: tuple[str, ...] = ()
    if out is not None and is_answer_table(out):
        columns = columns or [known_fields(example) for example in examples]
        rows = zip(columns, answers, strict=True)
        write_answer_table(out, rows, columns_of(columns))
        files = (str(out),)
    elif out is not None:
        files = tuple(map(str, task.write(out, split or "new", examples, answers)))
    return Predictions(task.config.name, examples, answers, files)


class Answered(NamedTuple):
    """An input with its answer."""

    columns: dict[str, Any]  # of the input, by name
    example: Any
    answer: Any


def answer_stream(
    models: Any, inputs: Iterable[Sequence[tuple[dict[str, Any], Any]]]
) -> Iterator[Answered]:
    """Answers inputs as they arrive, and logs at the end how many of them were truncated.

    Args:
        models: FinetunedModels, or the Predictor of an export.
        inputs: Lists of inputs, each with its columns and its example. A list is answered before
            the next one is read; so memory does not grow with their number.
    """
    truncated = Truncation()
    for several in inputs:
        for part in _parts(several):
            answers = models.answers([example for _, example in part])
            truncated.add(answers)
            for (columns, example), answer in zip(part, answers, strict=True):
                yield Answered(columns, example, answer)
    truncated.warn()


class Truncation:
    """Counts the inputs that a model did not read completely."""

    def __init__(self):
        self._answers = self._truncated = 0

    def add(self, answers: Sequence):
        """Counts answers with the field `dropped_tokens` or `dropped_words`."""
        self._answers += len(answers)
        for answer in answers:
            dropped = getattr(answer, "dropped_tokens", 0) + getattr(answer, "dropped_words", 0)
            self._truncated += dropped > 0

    def warn(self):
        """Logs a line if any input was truncated."""
        if self._truncated:
            logger.warning(
                "Truncated inputs: %s of %s. `dropped_tokens` or `dropped_words` of each answer "
                "counts what was not read.",
                f"{self._truncated:,}",
                f"{self._answers:,}",
            )


def _parts(inputs):
    """Yields at most `MOST_AT_A_TIME` inputs at a time, all with the same number of options."""
    groups = itertools.groupby(inputs, lambda one: len(getattr(one[1], "options", ())))
    for _, group in groups:
        while part := list(itertools.islice(group, MOST_AT_A_TIME)):
            yield part
