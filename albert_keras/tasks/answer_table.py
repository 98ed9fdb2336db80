"""Answers as a table, the columns of the input and those of the answer, and checks of a request.

Nothing here imports TensorFlow: a request is checked before.
"""

import csv
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from albert_keras.tasks.tables.rows import SkippedRow
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_text, write_json_lines

#: Name of the list of rows that were skipped.
SKIPPED_ROWS = "skipped-rows.csv"
#: Endings of files that contain one table; any other path is a folder.
ENDINGS = (".csv", ".jsonl")
#: Other endings of tables, which are refused instead of becoming a folder.
_OTHER_ENDINGS = (".json", ".parquet", ".tsv", ".txt", ".xls", ".xlsx")
#: What is put before the name of a column that the input already has.
_PREFIX = "predicted_"
#: Lists of candidates, which do not fit into the cells of a .csv.
_NESTED = ("nbest",)

logger = logging.getLogger(__name__)


def is_answer_table(out: str | os.PathLike | None) -> bool:
    """Returns whether answers are to be written as one table, a .csv or .jsonl."""
    return out is not None and Path(out).suffix.lower() in ENDINGS and not Path(out).is_dir()


def write_skipped_rows(out: str | os.PathLike | None, skipped: Mapping[str, Sequence[SkippedRow]]):
    """Lists skipped rows in the folder `out`, or for a table in `OUT.skipped-rows.csv` beside it.

    The columns are `file`, `line`, `reason` and `raw`. Without skipped rows, an older list is
    removed. None says in the log how to get the list.

    Args:
        skipped: By file, see `Task.skipped_rows`.
    """
    rows = [row for rows in skipped.values() for row in rows]
    if out is None:
        if rows:
            logger.warning("With `out`, all skipped rows are listed in a file.")
        return
    path = Path(f"{out}.{SKIPPED_ROWS}") if is_answer_table(out) else Path(out) / SKIPPED_ROWS
    if not rows:
        path.unlink(missing_ok=True)
        return
    with whole_text(path) as file:
        csv.writer(file).writerows([SkippedRow._fields, *rows])
    logger.warning("skipped rows: %s", path)


def check_required(settings: Mapping[str, Any], source: str, value: Any):
    """Raises InputError if settings are given, but not what they are for.

    Args:
        settings: By name; None if not given.
        source: The name of the argument that they require.
        value: Its value, None if not given.
    """
    given = [name for name, setting in settings.items() if setting is not None]
    if given and value is None:
        raise InputError(
            f"`{given[0]}` requires `{source}`. Received: {settings[given[0]]!r} and no `{source}`."
        )


def check_request(
    sources: Mapping[str, Any], data_dir: str | Path | None, of_file: Mapping[str, Any]
):
    """Raises InputError unless there is one source of examples, and the settings suit it.

    Args:
        sources: `inputs`, `file` and `split` by name.
        data_dir: As in `predict_task`.
        of_file: How to read `file`, by name: columns, encoding, ...
    """
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise InputError(
            "Give exactly one of `inputs`, `file` and `split` to predict. Received: "
            f"{' and '.join(f'`{name}`' for name in given) or 'none'}."
        )
    check_required({"data_dir": data_dir}, "split", sources["split"])
    check_required(of_file, "file", sources["file"])


def check_out(out: str | os.PathLike | None):
    """Raises InputError, before any model answers, if answers cannot be written to `out`."""
    if out is None or Path(out).is_dir():
        return
    path, is_table = Path(out), is_answer_table(out)
    if not is_table and path.suffix.lower() in _OTHER_ENDINGS:
        raise InputError(
            f"`out` must end in {' or '.join(ENDINGS)}, or be a folder. Received: `{out}`."
        )
    if is_table and path.exists():
        raise InputError(
            f"`out` must be a file that does not exist. Received: `{path}`, which exists."
        )
    check_output_folder(path)


def with_answers(
    rows: Sequence[dict[str, Any]], answers: Iterable[Any]
) -> Iterator[dict[str, Any]]:
    """Yields the values of each input and of its answer, by the name of their column.

    The `id` of the answer is left out, and so are its `words` if the input has them. If any input
    has a column with the same name, the column of the answer is called `predicted_...`.

    Args:
        rows: The values of the inputs.
        answers: Named tuples, see `albert_keras/models/answers.py`.
    """
    columns = _columns_of(rows)
    for row, answer in zip(rows, answers, strict=True):
        found = dict(row)
        for name, value in answer._asdict().items():
            if not (name == "id" or (name == "words" and name in columns)):
                found[_free(name, columns)] = value
        yield found


def write_answer_table(
    out: str | os.PathLike, rows: Sequence[dict[str, Any]], answers: Sequence[Any]
) -> None:
    """Writes a .csv or .jsonl, which appears complete or not at all.

    In a .csv the probabilities or scores of all classes take a column each, such as
    `probabilities_spam`; lists are written as JSON.

    Args:
        rows: The columns of each input.
        answers: The answer to each.
    """
    path, columns = Path(out), _columns_of(rows)
    if path.suffix.lower() != ".csv":
        write_json_lines(path, with_answers(rows, answers), default=str)
        return
    cells = [_cells(row, columns) for row in with_answers(rows, answers)]
    with whole_text(path) as file:
        # A column that only some inputs have comes before the answer, too.
        names = dict.fromkeys([*columns, *(cells[0] if cells else ())])
        writer = csv.DictWriter(file, list(names), lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)


def _cells(row, columns):
    """Returns the cells of a row of a .csv by the name of their column.

    Only the columns of the answer are divided or left out, those of the input stay as they are.
    """
    cells = {}
    for name, value in row.items():
        if name not in columns and name.removeprefix(_PREFIX) in _NESTED:
            continue
        if name not in columns and isinstance(value, dict):
            for key, one in value.items():
                cells[_free(f"{name}_{key}", columns)] = one
        else:
            is_json = isinstance(value, dict | list | tuple)
            cells[name] = json.dumps(value, ensure_ascii=False) if is_json else value
    return cells


def _free(name, columns):
    """Returns the name of a column of the answer, changed if the input has such a column."""
    while name in columns:
        name = _PREFIX + name
    return name


def _columns_of(rows):
    """Returns the names of all columns of some rows, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))
