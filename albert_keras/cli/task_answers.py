"""Answers of fine-tuned models for `albert-keras predict`: from texts, stdin, files and splits."""

import itertools
from pathlib import Path
from typing import Any

from albert_keras.cli.answer_lines import describe_answer
from albert_keras.cli.command import Output
from albert_keras.cli.typed_inputs import (
    arriving_lines,
    converted_lines,
    line_fields,
    typed_fields,
)
from albert_keras.report import count_of
from albert_keras.serving.predictor import ExportedTask
from albert_keras.tasks.answer_table import (
    columns_of,
    is_answer_table,
    with_answer,
    write_answer_table,
    write_skipped_rows,
)
from albert_keras.tasks.finetuned import FinetunedModels, check_columns
from albert_keras.tasks.given import typed_example, typed_examples
from albert_keras.tasks.kinds import TAGGING, build_task
from albert_keras.tasks.predict import answer_stream, predict_task
from albert_keras.tasks.task import known_fields
from data_pipeline.errors import InputError


def answer_task(
    models: list[Path],
    exported: ExportedTask | None,
    texts: list[str],
    fields: dict[str, Any],
    columns: dict[str, Any],
    file: Path | None = None,
    split: str | None = None,
    data_dir: Path | None = None,
    all_seeds: bool = False,
    out: Path | None = None,
    overwrite: bool = False,
) -> Output:
    """Answers what `predict` asks; its arguments were checked by `check_request`.

    Lines of stdin are answered as they arrive: then lines and values of the Output are iterators.

    Args:
        models: One or several runs, or one export.
        exported: The task of an export.
        fields: Other fields of each text, as in `Task.fields`.
        columns: How to read `file`, by the names of settings; None for those of the training.

    Raises:
        InputError: If settings, models and examples do not fit together.
    """
    if split is not None:
        where = data_dir, split, out, all_seeds
        found = predict_task(models, None, None, *where, overwrite=overwrite)
        if out is not None:
            return _written(found.answers, found.files)
        return _listed(zip(found.examples, found.answers, strict=True))
    arriving = None
    if file is None and not texts:
        lines = arriving_lines()
        arriving = itertools.chain([next(lines)], lines)  # without any line, no model is loaded
    answering, task = _load(models, exported, all_seeds, columns)
    names = ["id", "words"] if task.kind is TAGGING else ["id", *task.fields]
    if file is not None:
        examples, rows = task.read_rows(file)
        write_skipped_rows(out, task.skipped_rows)
        inputs, names = [list(zip(rows, examples, strict=True))], columns_of(rows)
    elif arriving is not None:
        inputs = _line_inputs(task, arriving, fields)
    else:
        typed = [typed_fields(text, fields) for text in texts]
        inputs = [[(known_fields(one), one) for one in typed_examples(task, typed)]]
    stream = answer_stream(answering, inputs)
    if is_answer_table(out):
        count = write_answer_table(out, ((one.columns, one.answer) for one in stream), names)
        values = {"answers": count, "files": [str(out)]}
        return Output(values, [f"{count_of(count, 'answer')}: {out}"])
    if out is not None:
        answered = list(stream)
        answers = [one.answer for one in answered]
        paths = task.write(out, "new", [one.example for one in answered], answers)
        return _written(answers, map(str, paths))
    if texts:
        return _listed((one.example, one.answer) for one in stream)
    if file is not None:
        values = (with_answer(one.columns, one.answer, names) for one in stream)
    else:
        values = (one.answer._asdict() for one in stream)
    return Output(values, (describe_answer(one.example, one.answer) for one in stream))


def _load(paths, exported, all_seeds, columns):
    """Returns models that answer, and their task, which reads a file as `columns` say."""
    changes = {name: value for name, value in columns.items() if value is not None}
    if exported is None:
        models = FinetunedModels(paths, all_seeds, **changes)
        return models, models.task
    from albert_keras.serving.predictor import Predictor

    config = exported.task.config
    check_columns(config, changes)
    return Predictor(paths[0]), build_task(config.replace(**changes))


def _line_inputs(task, arriving, fields):
    """Yields lists of inputs, each with its columns and its example, from lines of stdin."""
    numbers, ids = itertools.count(), set()

    def convert(number, line):
        own = line_fields(number, line, fields)
        try:
            example = typed_example(task, next(numbers), own)
        except InputError as error:
            raise InputError(f"Line {number} of stdin: {error}") from error
        if example.id in ids:
            raise InputError(f"Inputs must have different ids. Received twice: {example.id!r}.")
        ids.add(example.id)
        return known_fields(example), example

    return converted_lines(arriving, convert)


def _listed(pairs):
    pairs = list(pairs)
    lines = [describe_answer(*pair) for pair in pairs]
    return Output([answer._asdict() for _, answer in pairs], lines)


def _written(answers, files):
    line = f"{count_of(len(answers), 'answer')}: {', '.join(files)}"
    return Output([answer._asdict() for answer in answers], [line])
