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
from albert_keras.tasks.answer_table import is_answer_table, with_answers
from albert_keras.tasks.finetuned import open_finetuned
from albert_keras.tasks.given import typed_example
from albert_keras.tasks.predict import answer_stream, collected, predict_task
from albert_keras.tasks.tagging.words import log_word_split
from albert_keras.tasks.task import known_fields
from data_pipeline.errors import InputError


def answer_task(
    path: Path,
    is_export: bool,
    texts: list[str],
    fields: dict[str, Any],
    of_file: dict[str, Any],
    **arguments: Any,
) -> Output:
    """Answers what `predict` asks; its arguments were checked by `check_request`.

    Lines of stdin are answered as they arrive: then lines and values of the Output are iterators.

    Args:
        path: A run, a fine-tuning or an export.
        fields: Other fields of each text, as in `Task.fields`.
        of_file: How to read the file, by the names of settings; None for those of the training.
        arguments: Further arguments of `predict_task`.

    Raises:
        InputError: If settings, model and examples do not fit together.
    """
    file, out = arguments.get("file"), arguments.get("out")
    if texts or file is not None or "split" in arguments:
        inputs = [typed_fields(text, fields) for text in texts] or None
        found = predict_task(_exported(path) if is_export else path, inputs, **of_file, **arguments)
    else:
        arriving = arriving_lines()
        model = _exported(path) if is_export else open_finetuned(path, strategy="auto")
        log_word_split(model.task.config)
        stream = answer_stream(model.answers, _line_inputs(model.task, arriving, fields))
        if out is None:
            values = (one.answer._asdict() for one in stream)
            return Output(values, (describe_answer(one.example, one.answer) for one in stream))
        found = collected(model.task, stream, out)
    values = [answer._asdict() for answer in found.answers]
    if out is not None:
        if is_answer_table(out):
            values = {"answers": len(values), "files": list(found.files)}
        return Output(
            values, [f"{count_of(len(found.answers), 'answer')}: {', '.join(found.files)}"]
        )
    if file is not None:
        values = with_answers(found.rows, found.answers)
    return Output(values, map(describe_answer, found.examples, found.answers))


def _exported(path):
    from albert_keras.serving.predictor import Predictor

    return Predictor(path)


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
