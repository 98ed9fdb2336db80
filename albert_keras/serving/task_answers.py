"""Answers of fine-tuned exports to examples of their task.

`TaskPredictor` builds the sequences in Python, as in fine-tuning, and calls the signature
`predict_tokens`: so it returns everything that a task answers, such as the n best answers to a
question with their probabilities, and tags long sentences to their end. `answer_by_signatures`
needs nothing but the signatures over strings, as a client of a server has them; these return less.
Exports of older versions do not report the tokens that they dropped.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.tasks.choice.task import ChoiceAnswer
from albert_keras.tasks.classification.multi_label import labels_answers
from albert_keras.tasks.classification.multi_regression import scores_answers
from albert_keras.tasks.classification.task import class_answers, score_answers
from albert_keras.tasks.kinds import (
    CHOICE,
    CLASSIFICATION,
    MULTI_LABEL,
    MULTI_REGRESSION,
    REGRESSION,
    SIMILARITY,
    TAGGING,
)
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.tagging.task import TagAnswer
from albert_keras.tasks.task import Task
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Sequences that are computed at a time; of a choice, which has several for each example, fewer.
_ROWS, _CHOICES = 32, 8
#: Examples whose sequences are in memory at a time.
_EXAMPLES = 1024


class TaskPredictor:
    """Answers examples of a task.

    Args:
        tokenizer: The one that the model was trained with.
        model: Takes a dict of int32, see `Features.batch`, and `training`; returns the outputs in
            `TaskKind.outputs`, a dict of tensors.
        tuned: As `Task.tune` returns it.
        config: Shape of the model, if `model` is a function.
    """

    def __init__(
        self,
        task: Task,
        tokenizer: Tokenizer,
        model: Callable,
        tuned: dict[str, float] | None = None,
        config: AlbertConfig | None = None,
    ):
        self._task, self._tokenizer, self._tuned = task, tokenizer, tuned
        rows = _CHOICES if task.kind.has_options else _ROWS
        strategy = tf.distribute.get_strategy()
        self._predictor = RowPredictor(strategy, model, task.kind, rows, config=config)

    def answers(self, examples: list) -> list:
        """Answers examples; results and errors as of `Task.features` and `Task.answers`."""
        answers = []
        for begin in range(0, len(examples), _EXAMPLES):
            part = examples[begin : begin + _EXAMPLES]
            features = self._task.features(part, self._tokenizer)
            outputs = self._predictor.predict(features)
            answers += self._task.answers(part, features, [outputs], self._tuned or None)
        return answers


def model_of_signature(predict_tokens):
    """Returns the signature `predict_tokens` as a model for `TaskPredictor`."""
    names = ("input_ids", "input_mask", "segment_ids")
    return lambda inputs, training: predict_tokens(**{name: inputs[name] for name in names})


def call_by_rows(call: Callable, signature: str, **inputs: list[str]) -> list[dict]:
    """Calls a signature for any number of rows, in batches of similar length.

    Args:
        call: Takes the name of a signature, and lists of str by name; returns a dict of np.ndarray
            [B, ...].
        inputs: By name, equally long.

    Returns:
        The answer to each row, in order; it includes padding to the longest of its batch.
    """
    rows = list(zip(*inputs.values(), strict=True))
    order = sorted(range(len(rows)), key=lambda row: sum(map(len, rows[row])))
    answers = [None] * len(rows)
    for begin in range(0, len(rows), _ROWS):
        chosen = order[begin : begin + _ROWS]
        columns = zip(*(rows[row] for row in chosen), strict=True)
        found = call(signature, **dict(zip(inputs, map(list, columns), strict=True)))
        for name, values in found.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                raise InputError(f"The model returned values of `{name}` that are not finite.")
        for number, row in enumerate(chosen):
            answers[row] = {name: values[number] for name, values in found.items()}
    return answers


def answer_by_signatures(call: Callable, task: Task, examples: list) -> list:
    """Answers examples of a task, as `Task.answers`, by its signatures over strings.

    `call` is the same as for `call_by_rows`. The graph limits the bytes that are read of a
    text. Words of a sentence that it does not tag get the tag "" and the probability 0: words
    beyond these bytes, and in exports of older versions words that do not fit into one sequence.
    Signatures do not return enough for questions about a context.
    """
    by_kind = {CLASSIFICATION: _classes, REGRESSION: _scores, CHOICE: _choices, TAGGING: _tags}
    by_kind |= {MULTI_LABEL: _label_sets, MULTI_REGRESSION: _score_lists}
    by_kind |= {SIMILARITY: _scores}
    if task.kind not in by_kind:
        raise InputError(
            "Probabilities of answers to questions require the `export.json`, `tokenizer` and "
            f"`predict_tokens` of an export (kind `{task.kind.name}`). For the answers alone, call "
            "`question_answering` with `Predictor.ask`."
        )
    return by_kind[task.kind](call, examples) if examples else []


def _text_rows(call, examples):
    firsts = [example.first for example in examples]
    if examples[0].second is None:
        return call_by_rows(call, "serving_default", text=firsts)
    seconds = [example.second for example in examples]
    return call_by_rows(call, "text_pair", first=firsts, second=seconds)


def _columns(rows, name):
    """Returns the names of labels, and one of the outputs that have a value for each of them."""
    labels = [label.decode() for label in rows[0]["labels"]]
    return labels, np.array([row[name] for row in rows])


def _classes(call, examples):
    rows = _text_rows(call, examples)
    return _with_dropped(class_answers(examples, *_columns(rows, "probabilities")), rows)


def _label_sets(call, examples):
    rows = _text_rows(call, examples)
    return _with_dropped(labels_answers(examples, *_columns(rows, "probabilities")), rows)


def _score_lists(call, examples):
    rows = _text_rows(call, examples)
    return _with_dropped(scores_answers(examples, *_columns(rows, "scores")), rows)


def _scores(call, examples):
    rows = _text_rows(call, examples)
    answers = score_answers(examples, np.array([row["score"] for row in rows]))
    return _with_dropped(answers, rows)


def _with_dropped(answers, rows):
    counts = [int(row.get("dropped_tokens", 0)) for row in rows]
    pairs = zip(answers, counts, strict=True)
    return [answer._replace(dropped_tokens=count) for answer, count in pairs]


def _choices(call, examples):
    answers = []
    for example in examples:  # one at a time: the next may have another number of options
        inputs = {"context": [example.context], "question": [example.question]}
        [found] = call_by_rows(call, "multiple_choice", **inputs, options=[list(example.options)])
        choice, probabilities = int(found["choice"]), tuple(found["probabilities"].tolist())
        option, probability = example.options[choice], probabilities[choice]
        answer = ChoiceAnswer(example.id, choice, option, probability, probabilities)
        answers += _with_dropped([answer], [found])
    return answers


def _tags(call, examples):
    for example in examples:
        for word in example.words:
            if word.split() != [word]:
                raise InputError(
                    "Words of a sentence must not contain white space: the signature `tags` splits "
                    f"them there. Received: {word!r}."
                )
    rows = call_by_rows(call, "tags", text=[" ".join(example.words) for example in examples])
    answers = []
    for example, row in zip(examples, rows, strict=True):
        # The graph does not return words beyond the bytes that it reads.
        count = len(example.words)
        found = [tag.decode() for tag in row["tags"][:count]]
        missing = count - len(found)
        tags = (*found, *[""] * missing)
        probabilities = (*row["probability"][:count].tolist(), *[0.0] * missing)
        answer = TagAnswer(example.id, example.words, tags, probabilities, tags.count(""))
        answers.append(answer)
    return answers
