"""Answers of fine-tuned exports to examples of their task, read from their signatures over strings.

A server gives the same answers, and so does the Python code of training and evaluation, with which
exports are compared before they are published.
"""

import itertools
from collections.abc import Callable

import numpy as np

from albert_keras.tasks.choice.task import chosen
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.spans.task import DecodedAnswer
from albert_keras.tasks.tagging.task import TagAnswer
from albert_keras.tasks.task import Task
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.words import GIVEN_WORDS

#: Sequences that are computed at a time; of a choice, which has several for each example, fewer.
ROWS, CHOICES = 32, 8
#: Scores of start and end where there are fewer spans, see `SpanModel.answers`.
_NO_SPAN = -1e6


def call_by_rows(
    call: Callable, signature: str, batch_size: int = ROWS, /, **inputs: list
) -> list[dict]:
    """Calls a signature for any number of rows, in batches of similar length.

    Args:
        call: Takes the name of a signature, and lists of str by name; returns a dict of np.ndarray
            [B, ...].
        batch_size: Rows of a batch.
        inputs: By name, equally long: texts or lists of texts, whose length may differ.

    Returns:
        The answer to each row, in order; it includes padding to the longest of its batch.
    """
    rows = list(zip(*inputs.values(), strict=True))
    # A batch has the same number of texts in each row.
    counts = [[len(value) for value in row if not isinstance(value, str)] for row in rows]
    sizes = [sum(map(_size, row)) for row in rows]
    order = sorted(range(len(rows)), key=lambda row: (counts[row], sizes[row]))
    answers = [None] * len(rows)
    for _, several in itertools.groupby(order, counts.__getitem__):
        while chosen := list(itertools.islice(several, batch_size)):
            columns = zip(*(rows[row] for row in chosen), strict=True)
            found = call(signature, **dict(zip(inputs, map(list, columns), strict=True)))
            for name, values in found.items():
                if values.dtype.kind == "f" and not np.isfinite(values).all():
                    raise InputError(f"The model returned values of `{name}` that are not finite.")
            for number, row in enumerate(chosen):
                answers[row] = {name: values[number] for name, values in found.items()}
    return answers


def _size(value):
    return len(value) if isinstance(value, str) else sum(map(len, value))


def answer_by_signatures(
    call: Callable, task: Task, examples: list, tuned: dict[str, float] | None = None
) -> list:
    """Answers examples of a task, as `Task.answers`, by its signatures over strings.

    `call` is the same as for `call_by_rows`. The graph limits the bytes that are read of a
    text. Words of a sentence beyond these bytes get the tag "" and the probability 0.
    """
    if not examples:
        return []
    if task.kind == "tagging":
        return _tags(call, task, examples)
    if task.finds_spans:
        answers, rows = _spans(call, task, examples, tuned)
    elif task.has_options:
        answers, rows = _choices(call, examples)
    else:
        answers, rows = _of_texts(call, task, examples)
    counts = [int(row.get("dropped_tokens", 0)) for row in rows]
    pairs = zip(answers, counts, strict=True)
    return [answer._replace(dropped_tokens=count) for answer, count in pairs]


def _spans(call, task, examples, tuned):
    questions = [example.question for example in examples]
    contexts = [example.context for example in examples]
    rows = call_by_rows(call, "question_answering", question=questions, context=contexts)
    decoded = []
    for example, row in zip(examples, rows, strict=True):
        names = ("nbest_starts", "nbest_ends", "nbest_start_scores", "nbest_end_scores")
        spans = zip(*(row[name].tolist() for name in names), strict=True)
        # Without a place, but with scores, is a piece that is white space: an empty text.
        spans = ((span[:2], *span[2:]) for span in spans if span[2] > _NO_SPAN)
        texts = task.best_texts(example.context, spans)
        null_score = None if task.kind == "spans" else float(row["null_score"])
        decoded.append(DecodedAnswer(*texts, null_score))
    return task.decoded_answers(examples, decoded, tuned), rows


def _of_texts(call, task, examples):
    """Answers a text, or a pair of them, by labels or by numbers."""
    firsts = [example.first for example in examples]
    if examples[0].second is None:
        rows = call_by_rows(call, "serving_default", text=firsts)
    else:
        seconds = [example.second for example in examples]
        rows = call_by_rows(call, "text_pair", first=firsts, second=seconds)
    if task.kind == "classification":
        # The class that the graph chose, also among equally likely ones.
        numbers = label_numbers([row["label"].decode() for row in rows], task.labels)
        values = np.array([row["probabilities"] for row in rows])
        return task.class_answers(examples, values, numbers), rows
    [name] = rows[0].keys() & {"score", "scores", "probabilities"}
    values, tuned = np.array([row[name] for row in rows]), None
    if name == "probabilities":
        tuned = dict(zip(task.labels, rows[0]["thresholds"], strict=True))
    return task.read_out(examples, values.reshape(len(rows), -1), tuned), rows


def _choices(call, examples):
    rows = call_by_rows(
        call,
        "multiple_choice",
        CHOICES,
        context=[example.context for example in examples],
        question=[example.question for example in examples],
        options=[list(example.options) for example in examples],
    )
    choices = [int(row["choice"]) for row in rows]
    return chosen(examples, choices, [row["probabilities"].tolist() for row in rows]), rows


def _tags(call, task, examples):
    for example in examples:
        for word in example.words:
            if word.split() != [word]:
                raise InputError(
                    "Words of a sentence must not contain white space: the signature `tags` splits "
                    f"them there. Received: {word!r}."
                )
    texts = [GIVEN_WORDS + " ".join(example.words) for example in examples]
    rows = call_by_rows(call, "tags", text=texts)
    answers = []
    for example, row in zip(examples, rows, strict=True):
        # The graph does not return words beyond the bytes that it reads.
        count = len(example.words)
        found = [tag.decode() for tag in row["tags"][:count]]
        missing = count - len(found)
        tags = (*found, *[""] * missing)
        probabilities = (*row["probability"][:count].tolist(), *[0.0] * missing)
        answers.append(TagAnswer(example.id, example.words, tags, probabilities, tags.count("")))
    return answers
