"""Checks of what is to be predicted or scored, before TensorFlow is imported."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from albert_keras.tasks.answer_table import check_answer_table, check_ending, is_answer_table
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder


def check_answers_folder(out: str | os.PathLike | None):
    """Raises InputError, before any model answers, if a folder cannot be created."""
    if out is not None and not Path(out).is_dir():
        check_output_folder(Path(out))


def check_table_settings(settings: dict[str, Any], file: dict[str, Any]):
    """Raises InputError if settings of a table are given, but not the table.

    Args:
        settings: By name; None if not given.
        file: The name of the argument that takes the table, and its value.
    """
    [(argument, path)] = file.items()
    given = [name for name, value in settings.items() if value is not None]
    if given and path is None:
        raise InputError(
            f"`{given[0]}` requires `{argument}`. Received: {settings[given[0]]!r} and no file."
        )


def check_request(
    sources: Mapping[str, Any],
    data_dir: str | Path | None,
    text: str | int | None,
    pair: str | int | None,
    table: dict[str, Any],
):
    """Raises InputError unless there is one source of examples, and the settings suit it.

    Args:
        sources: `inputs`, `file` and `split` by name.
        data_dir, text, pair: As in `predict_task`.
        table: `delimiter`, `encoding` and `skip_bad_rows` by name.
    """
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise InputError(
            "Give exactly one of `inputs`, `file` and `split` to predict. Received: "
            f"{' and '.join(given) or 'none'}."
        )
    if sources["split"] is None and data_dir is not None:
        raise InputError(f"`data_dir` requires `split`. Received: {data_dir} and {given[0]}.")
    if sources["file"] is None and (text is not None or pair is not None):
        raise InputError(f"Columns of text and pair require `file`. Received: {given[0]}.")
    check_table_settings(table, {"file": sources["file"]})


def check_out(out: str | Path | None, file: str | Path | None, overwrite: bool):
    """Raises InputError, before any model answers, if answers cannot be written to `out`."""
    check_ending(out)
    if out is None or not is_answer_table(out):
        if overwrite:
            raise InputError(
                "`--overwrite` requires an `--out` that ends in .csv or .jsonl. "
                f"Received: {out or 'no --out'}."
            )
        check_answers_folder(out)
        return
    check_answer_table(out, overwrite)
    if file is not None and Path(out).resolve() == Path(file).resolve():
        raise InputError(f"`--out` must not be the file of the examples. Received: `{out}`.")
