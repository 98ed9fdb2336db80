"""Reads SQuAD: questions of version 1.1 and 2.0, and predictions in the official format."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, FiniteFloat

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.json_entries import broken, checked
from albert_keras.tasks.tables.rows import SkippedRow, skip_or_raise
from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_DATA_BYTES, reading_json


class Rule(NamedTuple):
    """What the answers to a question must be."""

    text: str  # completes "a question ..."
    holds: Callable[[QuestionExample], bool]


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    id: str | int
    question: str
    answers: list[_Answer] = []
    is_impossible: bool | None = None


class _Paragraph(BaseModel):
    context: str
    qas: list[_Question]


class _Article(BaseModel):
    paragraphs: list[_Paragraph]


class _Squad(BaseModel):
    data: list[_Article]


def read_questions(
    path: str | Path,
    needs_positions: bool = True,
    rule: Rule | None = None,
    skipped: list[SkippedRow] | None = None,
) -> list[QuestionExample]:
    """Returns the questions of a SQuAD file of version 1.1 or 2.0, in the order of the file.

    Questions to predict for need no answers. Other keys, such as `plausible_answers`, are ignored.
    Questions of one paragraph share one `context` object. As other programs write them, ids may be
    whole numbers, white space around an answer does not belong to it, and blank answers of an
    impossible question are left out.

    Args:
        needs_positions: Whether answers must be in the context at their `answer_start`; scores
            only compare their texts.
        rule: What the labels of a question must be, and a function that tells it.
        skipped: Receives the questions that cannot be used. None makes them an error.

    Raises:
        InputError: If there is no such file, it is not JSON of this form, or a question cannot be
            used: its id occurs twice, an answer is not where it should be, or `rule` is broken. See
            `checked` for the names of broken entries.
    """
    source = f"The SQuAD file `{path}`"
    file = checked(_Squad, _read_json(path), source)
    examples, bad, places, count = [], [], {}, 0
    for place, context, question in _questions(file):
        count += 1
        example, fault = _example(question, context, needs_positions)
        if example.id in places:
            fault = f"must have an `id` of its own. Received: {example.id!r}, as in "
            fault += f"{places[example.id]}."
        elif fault is None and rule is not None and not rule.holds(example):
            fault = f"{rule.text}. Received: {len(example.answers)} answers."
        if fault is None:
            examples.append(example)
        else:
            bad.append(SkippedRow(str(path), count, f"`{place}` {fault}", example.id))
        places[example.id] = f"`{place}`"
    if bad and skipped is None:
        advice = " Correct this, or skip such questions with --skip-bad-rows."
        raise broken(source, [row.reason for row in bad], advice)
    skip_or_raise(path, bad, count, skipped)
    if not examples:
        raise InputError(f"`{path}` must contain at least one question. Received: none.")
    return examples


def read_predictions(path: str | Path) -> dict[str, str]:
    """Returns the answers of an official prediction file: question id -> text, "" for no answer."""
    return checked(dict[str, str], _read_json(path), f"The predictions `{path}`")


def read_null_odds(path: str | Path) -> dict[str, float]:
    """Returns the scores of a file like `null_odds.json`: question id -> higher for "no answer"."""
    return checked(dict[str, FiniteFloat], _read_json(path), f"The scores `{path}`")


def _questions(file):
    """Yields where a question is in the file, its context and itself."""
    for number, article in enumerate(file.data):
        for count, paragraph in enumerate(article.paragraphs):
            for place, question in enumerate(paragraph.qas):
                where = f"data[{number}].paragraphs[{count}].qas[{place}]"
                yield where, paragraph.context, question


def _example(question, context, needs_positions):
    """Returns the example of a question, and what is wrong with its answers; None if nothing is."""
    answers, fault = [], None
    for answer in question.answers:
        text, start = answer.text.strip(), answer.answer_start
        if not text and question.is_impossible:
            continue
        indent = len(answer.text) - len(answer.text.lstrip())
        # The position is of the text with its white space, or, in some files, of the text alone.
        begins = [at for at in (start + indent, start) if at >= 0 and context.startswith(text, at)]
        if question.is_impossible:
            fault = f"is impossible and must have no `answers`. Received: {answer.text!r}."
        elif not text:
            fault = "must have answers with a `text`. Received: a blank one."
        elif not begins and needs_positions:
            found = context[start : start + len(answer.text)] if start >= 0 else ""
            fault = (
                "must have answers that are in the context at `answer_start`. "
                f"Received: {answer.text!r} at {start}, where the context has {found!r}."
            )
        answers.append(Answer(text, begins[0] if begins else max(context.find(text), 0)))
    id = str(question.id)
    example = QuestionExample(
        id, question.question, context, tuple(answers), question.is_impossible
    )
    return example, fault


def _read_json(path) -> Any:
    with reading_json(path, max_bytes=MAX_DATA_BYTES, kind=object, strict=False) as content:
        return content
