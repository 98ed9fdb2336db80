"""Reads the files of GLUE.

Rows are lines. Fields are separated by tabs and not quoted, so that they may contain a lone `"`.
"""

import functools
import os

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.tables.cells import Label, class_of, score_of
from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tables.rows import SkippedRow, examples_from, warn_skipped
from data_pipeline.errors import InputError, Mistake
from data_pipeline.text import storage


def official_path(task: str, data_dir: str | os.PathLike, split: str) -> str:
    """Returns the path of the official file of a split.

    Args:
        task: A name in `GLUE_TASKS`.
        data_dir: The folder that contains `CoLA`, `SST-2` and so on.
        split: "train", "dev" or "test"; for mnli "train", "dev_matched", "dev_mismatched",
            "test_matched" or "test_mismatched".

    Raises:
        InputError: If there is no such file.
    """
    folder = GLUE_TASKS[task].folder
    path = os.path.join(data_dir, folder, f"{split}.tsv")
    if not storage.exists(path):
        raise InputError(
            f"`{path}` does not exist. `data_dir` must be the folder that contains `{folder}`.",
            Mistake.NO_TASK_FILES,
        )
    return path


def read_glue_file(
    task: str,
    path: str | os.PathLike,
    is_labelled: bool = True,
    skipped: list[SkippedRow] | None = None,
) -> list[TextExample]:
    """Reads one file in the format of a task, whatever its location and name.

    Args:
        task: A name in `GLUE_TASKS`.
        path: UTF-8; a byte order mark, CRLF and blank lines at the end make no
            difference, all other control characters remain in the text.
        is_labelled: Whether it has the layout of the training or of the test file.
        skipped: Receives the rows that cannot be used. None makes them an error.

    Returns:
        `label` is a str of the task's labels, a float for sts-b, or None in
        a test file; `id` is the id of the row if it has one, otherwise its number from 0.

    Raises:
        InputError: If the file cannot be read, if its header is not the task's, or if a row has
            another number of columns or an unknown label; the first few of these are listed.
    """
    settings = GLUE_TASKS[task]
    first, second, label, id = settings.columns(is_labelled)
    columns = [column for column in (first, second, label, id) if column is not None]
    has_header = settings.numbers is None or not is_labelled
    table = read_raw_table(path, columns, has_header, is_official=True)
    rows, kind = table.rows, label_kind(task)
    if settings.skips_short_rows and is_labelled:
        short = [row for row in rows if len(row.fields) < len(table.names)]
        rows = [row for row in rows if len(row.fields) >= len(table.names)]
        warn_skipped(path, short, len(table.rows))

    def example(number, row):
        cells = {at: row.fields[key] for at, key in zip(columns, table.keys, strict=True)}
        value = None if label is None else kind([cells[label]], [label])
        return TextExample(cells.get(id, str(number)), cells[first], cells.get(second), value)

    return examples_from(path, rows, example, skipped)


def label_kind(task: str) -> Label:
    """Returns how the cell of a label is read."""
    settings = GLUE_TASKS[task]
    if settings.labels:
        return functools.partial(class_of, known=settings.labels)
    return functools.partial(score_of, limits=settings.score_range)
