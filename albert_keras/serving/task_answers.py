"""Answers of fine-tuned exports to examples of their task, read from their signatures over strings.

`TaskPredictor` gives the same answers in Python: sequences are built in NumPy, as in fine-tuning.
Exports are compared with it before they are published, and exports of earlier versions, whose
signatures return less, are answered by it.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.runs.run_record import check_tokenizer
from albert_keras.serving.exported_task import ExportedTask
from albert_keras.serving.layout import SHAPE_FILE
from albert_keras.tasks.choice.task import ChoiceAnswer
from albert_keras.tasks.classification.multi_label import THRESHOLD, labels_answers
from albert_keras.tasks.classification.regression import score_answers, scores_answers
from albert_keras.tasks.classification.task import class_answers
from albert_keras.tasks.kinds import (
    CHOICE,
    CLASSIFICATION,
    MULTI_LABEL,
    MULTI_REGRESSION,
    REGRESSION,
    SIMILARITY,
    SPANS,
    SPANS_OR_NONE,
    TAGGING,
)
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.spans.decoding import (
    NOTHING_V1,
    NOTHING_V2,
    DecodedAnswers,
    best_texts,
)
from albert_keras.tasks.tagging.task import TagAnswer
from albert_keras.tasks.task import Task
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
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


def call_by_rows(
    call: Callable, signature: str, batch_size: int = _ROWS, /, **inputs: list
) -> list[dict]:
    """Calls a signature for any number of rows, in batches of similar length.

    Args:
        call: Takes the name of a signature, and lists of str by name; returns a dict of np.ndarray
            [B, ...].
        batch_size: Rows of a batch.
        inputs: By name, equally long: texts or lists of texts.

    Returns:
        The answer to each row, in order; it includes padding to the longest of its batch.
    """
    rows = list(zip(*inputs.values(), strict=True))
    order = sorted(range(len(rows)), key=lambda row: sum(map(_size, rows[row])))
    answers = [None] * len(rows)
    for begin in range(0, len(rows), batch_size):
        chosen = order[begin : begin + batch_size]
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


def answer_in_python(
    folder: Path, exported: ExportedTask, predict_tokens: Callable, examples: list
) -> list:
    """Answers examples with `predict_tokens` of an export of an earlier version, in its folder.

    Raises:
        InputError: If the tokenizer of the export is missing or another one.
    """
    path = folder / TOKENIZER_FOLDER
    check_tokenizer(path, exported.tokenizer_digest, "export.json", "Export the run again.")
    shape = folder / SHAPE_FILE
    config = AlbertConfig.from_json_file(shape) if shape.is_file() else None
    model = model_of_signature(predict_tokens)
    predictor = TaskPredictor(exported.task, Tokenizer.load(path), model, exported.tuned, config)
    return predictor.answers(examples)


def answer_by_signatures(
    call: Callable, task: Task, examples: list, tuned: dict[str, float] | None = None
) -> list:
    """Answers examples of a task, as `Task.answers`, by its signatures over strings.

    `call` is the same as for `call_by_rows`. The graph limits the bytes that are read of a
    text. Words of a sentence beyond these bytes get the tag "" and the probability 0.
    """
    if not examples:
        return []
    if task.kind in (SPANS, SPANS_OR_NONE):
        return _spans(call, task, examples, tuned)
    by_kind = {CLASSIFICATION: _classes, REGRESSION: _scores, CHOICE: _choices, TAGGING: _tags}
    by_kind |= {MULTI_LABEL: _label_sets, MULTI_REGRESSION: _score_lists}
    by_kind |= {SIMILARITY: _scores}
    return by_kind[task.kind](call, examples)


def _spans(call, task, examples, tuned):
    questions = [example.question for example in examples]
    contexts = [example.context for example in examples]
    rows = call_by_rows(call, "question_answering", question=questions, context=contexts)
    nothing = NOTHING_V1 if task.kind is SPANS else NOTHING_V2
    nbest, locations = {}, {}
    for example, row in zip(examples, rows, strict=True):
        names = ("nbest_starts", "nbest_ends", "nbest_start_scores", "nbest_end_scores")
        spans = zip(*(row[name].tolist() for name in names), strict=True)
        spans = ((span[:2], *span[2:]) for span in spans if span[0] >= 0)
        nbest[example.id], locations[example.id] = best_texts(
            example.context, spans, task.config.n_best, nothing
        )
    predictions = {id: texts[0]["text"] for id, texts in nbest.items()}
    null_scores = None
    if task.kind is SPANS_OR_NONE:
        pairs = zip(examples, rows, strict=True)
        null_scores = {example.id: float(row["null_score"]) for example, row in pairs}
    decoded = DecodedAnswers(predictions, nbest, null_scores, locations)
    return _with_dropped(task.decoded_answers(examples, decoded, tuned), rows)


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
    labels, probabilities = _columns(rows, "probabilities")
    # Exports of earlier versions have no thresholds: every label applies from 0.5 on.
    thresholds = _columns(rows, "thresholds")[1] if "thresholds" in rows[0] else THRESHOLD
    answers = labels_answers(examples, labels, probabilities, thresholds)
    return _with_dropped(answers, rows)


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
    answers = [None] * len(examples)
    by_count = {}  # a batch has the same number of options in each row
    for number, example in enumerate(examples):
        by_count.setdefault(len(example.options), []).append(number)
    for numbers in by_count.values():
        several = [examples[number] for number in numbers]
        rows = call_by_rows(
            call,
            "multiple_choice",
            _CHOICES,
            context=[example.context for example in several],
            question=[example.question for example in several],
            options=[list(example.options) for example in several],
        )
        for number, example, row in zip(numbers, several, rows, strict=True):
            choice, probabilities = int(row["choice"]), tuple(row["probabilities"].tolist())
            option, probability = example.options[choice], probabilities[choice]
            answer = ChoiceAnswer(example.id, choice, option, probability, probabilities)
            (answers[number],) = _with_dropped([answer], [row])
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
