"""Reads SQuAD: questions of version 1.1 and 2.0, and predictions in the official format."""

import math
from pathlib import Path

from albert_keras.report import shortened_value
from albert_keras.tasks.examples import Answer, QuestionExample
from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_DATA_BYTES, reading_json

_SHOWN = 10  # broken entries in one message


class _Broken(Exception):
    """Raised with a description of a broken entry, to which the caller adds its location."""


def read_questions(path: str | Path) -> list[QuestionExample]:
    """Returns the questions of a SQuAD file of version 1.1 or 2.0, in the order of the file.

    Questions to predict for need no answers. Other keys, such as `plausible_answers`, are ignored.
    Questions of one paragraph share one `context` object.

    Raises:
        InputError: If there is no such file, it is not JSON of this form, an id occurs twice, or
            an answer is not at its `answer_start`. Broken entries are named by the numbers of
            article, paragraph and question, from 1.
    """
    content = _read_json(path)
    try:
        articles = _get(_of_type(content, dict, "an object"), "data", list, "a list")
    except _Broken as error:
        raise InputError(f"{path} must be a SQuAD file, but {error}") from error
    examples, problems, locations = [], [], {}
    for where, question, context in _questions(articles, problems):
        try:
            example = _example(question, context)
            if example.id in locations:
                earlier = locations[example.id]
                raise _Broken(f"`id` must be unique. Received: {example.id!r}, as in {earlier}.")
            locations[example.id] = where
            examples.append(example)
        except _Broken as error:
            problems.append(f"{where}: {error}")
    if problems:
        shown = "\n".join(f"  {problem}" for problem in problems[:_SHOWN])
        rest = f"\n  and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InputError(f"{path} has broken entries ({len(problems)}):\n{shown}{rest}")
    if not examples:
        raise InputError(f"{path} must contain at least one question. Received: none.")
    return examples


def read_predictions(path: str | Path) -> dict[str, str]:
    """Returns the answers of an official prediction file: question id -> text, "" for no answer."""
    return _read_map(path, str, "a text")


def read_null_odds(path: str | Path) -> dict[str, float]:
    """Returns the scores of a file like `null_odds.json`: question id -> higher for "no answer"."""
    scores = {id: float(score) for id, score in _read_map(path, (int, float), "a number").items()}
    for id, score in scores.items():
        if math.isnan(score):
            raise InputError(f"{path}: `{id}` must be a number. Received: NaN.")
    return scores


def _read_map(path, kind, kind_name):
    try:
        content = _of_type(_read_json(path), dict, "an object of ids and answers")
        for id in content:
            _get(content, id, kind, kind_name)
    except _Broken as error:
        raise InputError(f"{path} must be a file of predictions, but {error}") from error
    return content


def _questions(articles, problems):
    """Yields location, question and context; broken articles and paragraphs are `problems`."""
    for article_number, article in enumerate(articles, 1):
        where = f"article {article_number}"
        try:
            title = _of_type(article, dict, "an object").get("title")
            where += f" ({title!r})" if title is not None else ""
            paragraphs = _get(article, "paragraphs", list, "a list")
        except _Broken as error:
            problems.append(f"{where}: {error}")
            continue
        for paragraph_number, paragraph in enumerate(paragraphs, 1):
            here = f"{where}, paragraph {paragraph_number}"
            try:
                context = _get(_of_type(paragraph, dict, "an object"), "context", str, "a text")
                questions = _get(paragraph, "qas", list, "a list")
            except _Broken as error:
                problems.append(f"{here}: {error}")
                continue
            for number, question in enumerate(questions, 1):
                yield f"{here}, question {number}", question, context


def _example(question, context):
    id = _get(_of_type(question, dict, "an object"), "id", str, "a text")
    text = _get(question, "question", str, "a text")
    is_impossible = question.get("is_impossible")
    if is_impossible is not None:
        _get(question, "is_impossible", bool, "true or false")
    answers = _get(question, "answers", list, "a list") if "answers" in question else []
    answers = tuple(
        _answer(answer, context, f"answer {number} ") for number, answer in enumerate(answers, 1)
    )
    if is_impossible and answers:
        raise _Broken(f"an impossible question must have no `answers`. Received: {len(answers)}.")
    return QuestionExample(id, text, context, answers, is_impossible)


def _answer(answer, context, where):
    _of_type(answer, dict, "an object", where)
    text = _get(answer, "text", str, "a text", where)
    start = _get(answer, "answer_start", int, "a whole number", where)
    if not text.strip():
        raise _Broken(f"{where}must have a `text`. Received: {text!r}.")
    found = context[start : start + len(text)] if start >= 0 else ""
    if found != text:
        raise _Broken(
            f"{where}must be in the context at `answer_start`. "
            f"Received: {text!r} at {start}, where the context has {found!r}."
        )
    return Answer(text, start)


def _get(entry, key, kind, kind_name, where=""):
    if key not in entry:
        raise _Broken(
            f"{where}must have the key `{key}`. Received: {shortened_value(list(entry))}."
        )
    return _of_type(entry[key], kind, kind_name, f"{where}`{key}` ")


def _of_type(value, kind, kind_name, what="the entry "):
    is_boolean = isinstance(value, bool)  # which Python counts among the numbers
    if not isinstance(value, kind) or (is_boolean and kind is not bool):
        raise _Broken(f"{what}must be {kind_name}. Received: {shortened_value(value)}.")
    return value


def _read_json(path):
    with reading_json(path, max_bytes=MAX_DATA_BYTES, kind=object, strict=False) as content:
        return content
