"""Answers from nothing but the signatures over strings, as a client of a server has them."""

import numpy as np

from albert_keras.tasks.kinds import CHOICE, CLASSIFICATION, REGRESSION, TAGGING
from albert_keras.tasks.plain_predictions import class_answers, score_answers
from albert_keras.tasks.race.choice_task import ChoiceAnswer
from albert_keras.tasks.tagging.tag_task import TagAnswer
from data_pipeline.errors import InputError

#: Texts that are sent at a time.
_ROWS = 32


def ask_rows(ask, signature, **inputs):
    """Asks a signature for any number of rows, short ones with short ones.

    Args:
        ask: callable. Takes the name of a signature, and lists of str by name; returns a dict of
            np.ndarray [B, ...].
        signature: str.
        inputs: list of str by name, equally long.

    Returns:
        list of dict. What it answers to each row, in order; what fills up to the longest of a batch
        is among it.

    Raises:
        InputError: If a number in an answer is not finite.
    """
    rows = list(zip(*inputs.values(), strict=True))
    order = sorted(range(len(rows)), key=lambda row: sum(map(len, rows[row])))
    answers = [None] * len(rows)
    for begin in range(0, len(rows), _ROWS):
        chosen = order[begin : begin + _ROWS]
        columns = zip(*(rows[row] for row in chosen), strict=True)
        found = ask(signature, **dict(zip(inputs, map(list, columns), strict=True)))
        for name, values in found.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise InputError(f"The model gives no numbers: some `{name}` are not finite.")
        for place, row in enumerate(chosen):
            answers[row] = {name: values[place] for name, values in found.items()}
    return answers


def answer_by_signatures(ask, task, examples):
    """Answers examples of a task.

    Of texts are read as many bytes as the graph reads. Words of a sentence that do not fit into one
    row have the tag "" and the probability 0.

    Args:
        ask: callable. As of `ask_rows`.
        task: Task. Of the model's kind.
        examples: list. As `Task.example` returns them.

    Returns:
        list of named tuples, see `Task.answers`.

    Raises:
        InputError: If the kind of task cannot be answered so, or a word has white space in it.
    """
    answers = {
        CLASSIFICATION: _classes,
        REGRESSION: _scores,
        CHOICE: _choices,
        TAGGING: _tags,
    }.get(task.kind)
    if answers is None:
        raise InputError(
            "Without the `export.json`, `tokenizer` and `predict_tokens` of an export there are no "
            f"probabilities of answers to questions (kind `{task.kind.name}`); `Predictor.ask` "
            "gives what `question_answering` says."
        )
    return answers(ask, examples) if examples else []


def _ask_texts(ask, examples):
    firsts = [example.first for example in examples]
    if examples[0].second is None:
        return ask_rows(ask, "serving_default", text=firsts)
    seconds = [example.second for example in examples]
    return ask_rows(ask, "text_pair", first=firsts, second=seconds)


def _classes(ask, examples):
    rows = _ask_texts(ask, examples)
    labels = [label.decode() for label in rows[0]["labels"]]
    return class_answers(examples, labels, np.array([row["probabilities"] for row in rows]))


def _scores(ask, examples):
    return score_answers(examples, np.array([row["score"] for row in _ask_texts(ask, examples)]))


def _choices(ask, examples):
    answers = []
    for example in examples:  # the next one may have another number of options
        inputs = {"context": [example.context], "question": [example.question]}
        [found] = ask_rows(ask, "multiple_choice", **inputs, options=[list(example.options)])
        choice, probabilities = int(found["choice"]), tuple(found["probabilities"].tolist())
        option, probability = example.options[choice], probabilities[choice]
        answers.append(ChoiceAnswer(example.id, choice, option, probability, probabilities))
    return answers


def _tags(ask, examples):
    for example in examples:
        parted = [word for word in example.words if word.split() != [word]]
        if parted:
            raise InputError(
                "Words of a sentence should be without white space: the signature `tags` parts "
                f"them there. Received: {parted[0]!r}."
            )
    rows = ask_rows(ask, "tags", text=[" ".join(example.words) for example in examples])
    answers = []
    for example, row in zip(examples, rows, strict=True):
        # Words beyond the bytes that are read are not among those of the graph.
        count = len(example.words)
        found = [tag.decode() for tag in row["tags"][:count]]
        tags = (*found, *[""] * (count - len(found)))
        probabilities = row["probability"][:count].tolist()
        probabilities = (*probabilities, *[0.0] * (count - len(probabilities)))
        answers.append(TagAnswer(example.id, example.words, tags, probabilities))
    return answers
