"""Answers of fine-tuned models for `albert-keras predict`: from texts, stdin, files and splits."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.cli.answer_lines import describe_answer
from albert_keras.cli.command import Output
from albert_keras.cli.typed_inputs import (
    arriving_lines,
    converted_lines,
    line_fields,
    typed_fields,
)
from albert_keras.report import count_of
from albert_keras.serving.exported_task import ExportedTask
from albert_keras.tasks.answer_table import (
    columns_of,
    is_answer_table,
    with_answer,
    write_answer_table,
    write_skipped_rows,
)
from albert_keras.tasks.finetuned import (
    FinetunedModels,
    check_columns,
)
from albert_keras.tasks.given import typed_example, typed_examples
from albert_keras.tasks.kinds import TAGGING, build_task
from albert_keras.tasks.predict import answer_stream, predict_task
from albert_keras.tasks.task import known_fields
from data_pipeline.errors import InputError


class TaskRequest(NamedTuple):
    """The arguments of a command that answers examples of a task, checked by `check_request`."""

    models: list[Path]  # one or several runs, or one export
    exported: ExportedTask | None  # None for runs
    all_seeds: bool
    texts: list[str]
    fields: dict[str, Any]  # other fields of each text, as in `Task.fields`
    file: Path | None
    columns: dict[str, str | None]  # of `file`: `text` and `pair`
    table: dict[str, Any]  # of `file`: `delimiter`, `encoding` and `skip_bad_rows`
    split: str | None
    data_dir: Path | None
    out: Path | None
    overwrite: bool


def answer_task(request: TaskRequest) -> Output:
    """Answers what a command asks.

    Lines of stdin are answered as they arrive: then lines and values of the Output are iterators.

    Raises:
        InputError: If settings, models and examples do not fit together.
    """
    file, split, out = request.file, request.split, request.out
    if split is not None:
        where = request.data_dir, split, out, request.all_seeds
        found = predict_task(request.models, None, None, *where, overwrite=request.overwrite)
        if out is not None:
            return _written(found.answers, found.files)
        return _listed(zip(found.examples, found.answers, strict=True))
    arriving = None
    if file is None and not request.texts:
        lines = arriving_lines()
        arriving = itertools.chain([next(lines)], lines)  # without any line, no model is loaded
    models, task = _load(request)
    names = ["id", "words"] if task.kind is TAGGING else ["id", *task.fields]
    if file is not None:
        examples, rows = task.read_rows(file)
        write_skipped_rows(out, task.skipped_rows)
        inputs, names = [list(zip(rows, examples, strict=True))], columns_of(rows)
    elif arriving is not None:
        inputs = _line_inputs(task, arriving, request.fields)
    else:
        fields = [typed_fields(text, request.fields) for text in request.texts]
        inputs = [[(known_fields(one), one) for one in typed_examples(task, fields)]]
    stream = answer_stream(models, inputs)
    if is_answer_table(out):
        count = write_answer_table(out, ((one.columns, one.answer) for one in stream), names)
        values = {"answers": count, "files": [str(out)]}
        return Output(values, [f"{count_of(count, 'answer')}: {out}"])
    if out is not None:
        answered = list(stream)
        answers = [one.answer for one in answered]
        paths = task.write(out, "new", [one.example for one in answered], answers)
        return _written(answers, map(str, paths))
    if request.texts:
        return _listed((one.example, one.answer) for one in stream)
    if file is not None:
        values = (with_answer(one.columns, one.answer, names) for one in stream)
    else:
        values = (one.answer._asdict() for one in stream)
    return Output(values, (describe_answer(one.example, one.answer) for one in stream))


def _load(request):
    """Returns models that answer, and their task, which reads a file as the request says."""
    changes = {
        name: value
        for name, value in (request.columns | request.table).items()
        if value is not None
    }
    if request.exported is None:
        models = FinetunedModels(request.models, request.all_seeds, **changes)
        return models, models.task
    from albert_keras.serving.predictor import Predictor

    config = request.exported.task.config
    check_columns(config, changes)
    return Predictor(request.models[0]), build_task(config.replace(**changes))


def _line_inputs(task, arriving, fields):
    """Yields lists of inputs, each with its columns and its example, from lines of stdin."""
    ids = _Ids()

    def convert(number, line):
        own = line_fields(number, line, fields)
        try:
            example = typed_example(task, ids.take(own), own)
        except InputError as error:
            raise InputError(f"Line {number} of stdin: {error}") from error
        return known_fields(example), example

    return converted_lines(arriving, convert)


class _Ids:
    """Numbers inputs, and refuses ids that occur twice. Only ids that are given take memory."""

    def __init__(self):
        self._next, self._given, self._numbers = 0, set(), set()

    def take(self, fields):
        """Returns the number of an input, which is its id unless it has one."""
        number, self._next = self._next, self._next + 1
        id = str(fields.get("id", number))
        is_taken = id in self._given
        if "id" in fields:
            is_number = id.isdecimal() and int(id) < number and int(id) not in self._numbers
            is_taken |= is_number
            self._given.add(id)
            self._numbers.add(number)
        if is_taken:
            raise InputError(f"Inputs must have different ids. Received twice: {id!r}.")
        return number


def _listed(pairs):
    pairs = list(pairs)
    lines = [describe_answer(*pair) for pair in pairs]
    return Output([answer._asdict() for _, answer in pairs], lines)


def _written(answers, files):
    line = f"{count_of(len(answers), 'answer')}: {', '.join(files)}"
    return Output([answer._asdict() for answer in answers], [line])
