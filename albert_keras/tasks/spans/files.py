"""Reads SQuAD: questions of version 1.1 and 2.0."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.tables.rows import (
    Row,
    RowError,
    SkippedRow,
    checked,
    examples_from,
    read_checked,
)

#: What the answers to a labelled question must be, by version.
_RULES = {
    1: "must have an answer; squad2 is for questions without answers",
    2: "must have an answer or be impossible",
}


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
    qas: list[Any]


class _Article(BaseModel):
    paragraphs: list[_Paragraph]


class _Squad(BaseModel):
    data: list[_Article]


def read_questions(
    path: str | Path,
    needs_positions: bool = True,
    version: int | None = None,
    skipped: list[SkippedRow] | None = None,
) -> list[QuestionExample]:
    """Returns the questions of a file as SQuAD 1.1 and 2.0 are published, in its order.

    Questions to predict for need no answers. Other keys, such as `plausible_answers`, are ignored.
    Questions of one paragraph share one `context` object. White space around an answer does not
    belong to it.

    Args:
        path: The file.
        needs_positions: Whether answers must be in the context at their `answer_start`; scores
            only compare their texts.
        version: 1 or 2 if questions must be labelled; None if they need no answers.
        skipped: Receives the questions that cannot be used. None makes them an error.

    Raises:
        InputError: If there is no such file, it is not JSON of this form, or a question cannot be
            used: its id occurs twice, an answer is not where it should be, or none is known.
    """
    seen: dict[str, int] = {}

    def example(number, row):
        place, context, fields = row.fields
        try:
            question = checked(_Question, fields)
            if question.id in seen:
                raise RowError(
                    f"must have an `id` of its own. Received: {question.id!r}, as in question "
                    f"{seen[question.id]}."
                )
            seen[question.id] = number + 1
            _check_answers(question, version)
            answers = [_answer(one, context, needs_positions) for one in question.answers]
        except RowError as error:
            raise RowError(f"(`{place}`) {error}") from None
        return QuestionExample(
            question.id, question.question, context, tuple(answers), question.is_impossible
        )

    return examples_from(path, _questions(path), example, skipped, unit="question")


def _questions(path) -> Iterator[Row]:
    """Yields each question as a Row of its place in the file, its context and itself."""
    line = 0
    for number, article in enumerate(read_checked(_Squad, path).data):
        for at, paragraph in enumerate(article.paragraphs):
            for of_paragraph, question in enumerate(paragraph.qas):
                line += 1
                place = f"data[{number}].paragraphs[{at}].qas[{of_paragraph}]"
                yield Row(line, (place, paragraph.context, question), place)


def _check_answers(question, version):
    """Raises RowError unless a question has the answers that its version of SQuAD requires."""
    is_impossible = bool(question.is_impossible)
    if is_impossible and question.answers:
        raise RowError(
            "must have no answers, as it is impossible. "
            f"Received: {question.answers[0].text!r}. `plausible_answers` has others."
        )
    if version == 1 and is_impossible or version and not (question.answers or is_impossible):
        raise RowError(f"{_RULES[version]}. Received: {len(question.answers)} answers.")


def _answer(answer, context, needs_positions):
    """Returns an answer without white space around it; RowError for one that cannot be used."""
    text, start = answer.text.strip(), answer.answer_start
    if not text:
        raise RowError("must have answers with a text. Received: a blank one.")
    found = context[max(start, 0) :][: len(answer.text)]
    if found == answer.text and start >= 0:
        return Answer(text, start + len(answer.text) - len(answer.text.lstrip()))
    if needs_positions:
        raise RowError(
            "must have answers that are in the context at `answer_start`, counted in characters. "
            f"Received: {answer.text!r} at {start}, where the context has {found!r}."
        )
    return Answer(text, max(context.find(text), 0))
