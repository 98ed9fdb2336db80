"""Reads SQuAD: questions of version 1.1 and 2.0, and predictions in the official format."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, FiniteFloat

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.json_entries import broken, checked
from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_DATA_BYTES, reading_json


class _Answer(BaseModel):
    text: str
    answer_start: int


class _Question(BaseModel):
    id: str
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


def read_questions(path: str | Path) -> list[QuestionExample]:
    """Returns the questions of a SQuAD file of version 1.1 or 2.0, in the order of the file.

    Questions to predict for need no answers. Other keys, such as `plausible_answers`, are ignored.
    Questions of one paragraph share one `context` object.

    Raises:
        InputError: If there is no such file, it is not JSON of this form, an id occurs twice, or
            an answer is not at its `answer_start`; see `checked` for the names of broken entries.
    """
    file = checked(_Squad, _read_json(path), f"The SQuAD file `{path}`")
    examples, problems, places = [], [], {}
    for place, context, question in _questions(file):
        fault = _fault(question, context)
        if question.id in places:
            fault = f"must have an `id` of its own. Received: {question.id!r}, as in "
            fault += f"{places[question.id]}."
        if fault is not None:
            problems.append(f"`{place}` {fault}")
        places[question.id] = f"`{place}`"
        answers = tuple(Answer(answer.text, answer.answer_start) for answer in question.answers)
        examples.append(
            QuestionExample(
                question.id, question.question, context, answers, question.is_impossible
            )
        )
    if problems:
        raise broken(f"The SQuAD file `{path}`", problems)
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


def _fault(question, context):
    """Returns what is wrong with the answers to a question; None if nothing is."""
    if question.is_impossible and question.answers:
        return f"is impossible and must have no `answers`. Received: {len(question.answers)}."
    for answer in question.answers:
        text, start = answer.text, answer.answer_start
        found = context[start : start + len(text)] if start >= 0 else ""
        if not text.strip() or found != text:
            return (
                "must have answers that are in the context at `answer_start`. "
                f"Received: {text!r} at {start}, where the context has {found!r}."
            )
    return None


def _read_json(path) -> Any:
    with reading_json(path, max_bytes=MAX_DATA_BYTES, kind=object, strict=False) as content:
        return content
