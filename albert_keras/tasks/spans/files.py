"""Reads SQuAD: questions of version 1.1 and 2.0."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, FiniteFloat, model_validator

from albert_keras.tasks.examples import Answer, QuestionExample, normalised
from albert_keras.tasks.tables.raw_table import object_rows
from albert_keras.tasks.tables.rows import (
    Row,
    RowError,
    SkippedRow,
    checked,
    examples_from,
    read_checked,
    remark,
)
from data_pipeline.tokenizers.cleanup import PLAIN_MARKS

#: The official files of answers: id of a question -> text, "" for no answer; and of scores for "no
#: answer", see `read_checked`.
PREDICTIONS, NULL_ODDS = dict[str, str], dict[str, FiniteFloat]
#: What the answers to a labelled question must be, by version.
_RULES = {
    1: "must have an answer; squad2 is for questions without answers",
    2: "must have an answer or be impossible",
}


#: What is unusual about questions, after their number.
_NO_ANSWERS = "questions have no answers and no `is_impossible`, and are read as impossible"
_ANSWERS = "questions are impossible and have answers, with which they are scored but not trained"
_OTHER_FORM = "questions have answers that their context has in another form of letters or marks"
_PLAIN_MARKS = str.maketrans(PLAIN_MARKS)
_WHOLE_NUMBER = re.compile(r"\s*-?\d+\s*")


class _Answer(BaseModel):
    text: str
    answer_start: float | None = None


class _Question(BaseModel):
    id: Any
    question: str
    answers: list[_Answer] = []
    is_impossible: bool | None = None


class _Paragraph(BaseModel):
    context: str
    qas: list[dict[str, Any]]


class _Squad(BaseModel):
    data: list[Any]

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, value):
        return {"data": value} if isinstance(value, list) else value


def read_questions(
    path: str | Path,
    needs_positions: bool = True,
    version: int | None = None,
    skipped: list[SkippedRow] | None = None,
    remarks: list[str] | None = None,
) -> list[QuestionExample]:
    """Returns the questions of a SQuAD file of version 1.1 or 2.0, in the order of the file.

    Questions to predict for need no answers. Other keys, such as `plausible_answers`, are ignored.
    Questions of one paragraph share one `context` object. As other programs write them, ids may be
    whole numbers, white space around an answer does not belong to it, blank answers of an
    impossible question are left out, each question may have its `context`, as in the data sets of
    Hugging Face, also in a .jsonl, and the file may be the list of `data` alone. A question of
    version 2.0 with an empty list of answers and without `is_impossible` is impossible, as for the
    official scripts; to train on, so is one that is impossible and has answers.

    Args:
        needs_positions: Whether answers must be in the context at their `answer_start`; scores
            only compare their texts.
        version: 1 or 2 if questions must be labelled; None if they need no answers.
        skipped: Receives the questions that cannot be used. None makes them an error.
        remarks: Receives what is unusual about the file, which is logged in any case.

    Raises:
        InputError: If there is no such file, it is not JSON of this form, or a question cannot be
            used: its id occurs twice, an answer is not where it should be, or none is known.
    """
    seen: dict[str, int] = {}
    unusual: dict[str, list[str]] = {_NO_ANSWERS: [], _ANSWERS: [], _OTHER_FORM: []}

    def example(number, row):
        place, context, fields = row.fields
        try:
            question = checked(_Question, _with_list_of_answers(fields))
            if isinstance(question.id, bool) or not isinstance(question.id, str | int):
                raise RowError(f"`id` must be a text or a number. Received: {question.id!r}.")
            if (id := str(question.id)) in seen:
                raise RowError(f"must have an `id` of its own. Received: {id!r}, as in {seen[id]}.")
            seen[id] = f"question {number + 1}"
            if fields.get("answers") == [] and question.is_impossible is None and version == 2:
                question.is_impossible = True
                unusual[_NO_ANSWERS].append(place)
            if question.is_impossible and any(one.text.strip() for one in question.answers):
                unusual[_ANSWERS].append(place)
                if needs_positions:
                    question.answers = []
            made = _example(question, context, needs_positions)
            if any(_has_other_form(answer.text, context) for answer in made.answers):
                unusual[_OTHER_FORM].append(place)
            is_impossible = bool(made.is_impossible)
            if version == 1 and is_impossible or version and not (made.answers or is_impossible):
                raise RowError(f"{_RULES[version]}. Received: {len(made.answers)} answers.")
        except RowError as error:
            raise RowError(f"(`{place}`) {error}") from None
        return made

    examples = examples_from(path, _questions(path), example, skipped, unit="question")
    texts = [
        f"{len(each):,} {what}; the first is {each[0]}" for what, each in unusual.items() if each
    ]
    remark(path, texts, remarks)
    return examples


def _questions(path) -> Iterator[Row]:
    """Yields each question as a Row of its place in the file, its context and itself."""
    line = 0
    for where, content in _paragraphs(path):
        try:
            paragraph = checked(_Paragraph, content)
        except RowError as error:
            line += 1
            yield Row(line, None, where, f"(`{where}`) {error}")
            continue
        for number, question in enumerate(paragraph.qas):
            line += 1
            place = f"{where}.qas[{number}]" if "qas" in content else where
            yield Row(line, (place, paragraph.context, question), str(question.get("id")))


def _paragraphs(path):
    """Yields the place and the content of each paragraph; a question with a context is one, too."""
    if Path(path).suffix.lower() == ".jsonl":
        articles = ((f"line {row.line}", row.fields) for row in object_rows(path))
    else:
        data = read_checked(_Squad, path).data
        articles = ((f"data[{number}]", article) for number, article in enumerate(data))
    for place, article in articles:
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        if isinstance(paragraphs, list):
            for number, paragraph in enumerate(paragraphs):
                yield f"{place}.paragraphs[{number}]", paragraph
        else:
            yield place, {"qas": [article]} | article if isinstance(article, dict) else article


def _with_list_of_answers(question):
    """Returns a question whose answers are a list, which Hugging Face has as a list of each part.

    There a question without answers is impossible. A position that is written as text is a number.
    """
    answers, added = question.get("answers"), {}
    if isinstance(answers, dict):
        columns = [values for values in answers.values() if isinstance(values, list)]
        answers = [dict(zip(answers, row, strict=True)) for row in zip(*columns, strict=False)]
        added = {} if answers else {"is_impossible": True}
    if not isinstance(answers, list):
        return question
    for number, answer in enumerate(answers):
        start = answer.get("answer_start") if isinstance(answer, dict) else None
        if isinstance(start, str) and _WHOLE_NUMBER.fullmatch(start):
            answers[number] = answer | {"answer_start": int(start)}
    return question | {"answers": answers} | added


def _has_other_form(text, context):
    plain, others = (normalised(one.translate(_PLAIN_MARKS)) for one in (text, context))
    return text not in context and plain in others


def _example(question, context, needs_positions):
    """Returns the example of a question; RowError for an answer that cannot be used."""
    answers = []
    for answer in question.answers:
        text = answer.text.strip()
        start = -1 if answer.answer_start is None else int(answer.answer_start)
        if not text and question.is_impossible:
            continue
        indent = len(answer.text) - len(answer.text.lstrip())
        # The position is of the text with its white space, or, in some files, of the text alone.
        begins = [at for at in (start + indent, start) if at >= 0 and context.startswith(text, at)]
        if not text:
            raise RowError("must have answers with a text. Received: a blank one.")
        if not begins and needs_positions:
            found = context[start : start + len(answer.text)] if start >= 0 else ""
            at = "null" if answer.answer_start is None else start
            received = f"{answer.text!r} at {at}, where the context has {found!r}."
            if _has_other_form(text, context):
                received += " It is there in another form: Unicode (NFD for NFC), case, or quotes."
            elif text in context:
                received += f" It is there at {context.find(text)}."
            raise RowError(
                f"must have answers that are in the context at `answer_start`. Received: {received}"
            )
        answers.append(Answer(text, begins[0] if begins else max(context.find(text), 0)))
    return QuestionExample(
        str(question.id), question.question, context, tuple(answers), question.is_impossible
    )
