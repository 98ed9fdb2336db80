"""What fewer bytes per weight cost a fine-tuned model, on examples of its task."""

import itertools
import logging
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.finetuning.finetuned import typed_examples
from albert_keras.finetuning.predicting import RowPredictor
from albert_keras.serving.export.check_inputs import inputs_of_texts
from albert_keras.serving.graph.precision import StoredModel
from data_pipeline.errors import InputError
from data_pipeline.text.installed_docs import installed_documentation

logger = logging.getLogger(__name__)

#: Examples that are compared, at most.
NUM_EXAMPLES = 256
#: Share of equal answers below which something is probably wrong.
_LEAST_AGREEMENT = 0.9


class TaskLoss(NamedTuple):
    """How far the answers of a variant are from those of the float32 model.

    Attributes:
        num_predictions: int. Examples compared.
        agreement: float. Share of them with the same answer: label, option, text or tags; of
            scores, those that differ by less than 0.01.
        mean_difference, largest_difference: float. Of the probability of an answer, or of a score.
        scores, float32_scores: dict of str to float. By the metrics of the task; empty where the
            examples have no answers.
    """

    num_predictions: int
    agreement: float
    mean_difference: float
    largest_difference: float
    scores: dict[str, float]
    float32_scores: dict[str, float]


def compare_task(source, precision, eval_data=None):
    """Reads examples, and returns a function that compares a variant on them.

    Args:
        source: ExportSource. Of a fine-tuned model.
        precision: str. Of the variant, for messages.
        eval_data: str, Path or None. A file of labelled examples; None takes the development
            examples of the training where they still are, else texts of the documentation of
            installed packages, which have no answers.

    Returns:
        callable. StringModel → TaskLoss.

    Raises:
        InputError: If `eval_data` cannot be read.
    """
    examples, are_labelled = _examples(source.task, eval_data)

    def task_loss(module):
        logger.info("comparing %s with float32 on %d examples", precision, len(examples))
        expected = _answers(source, StoredModel(source.model), examples)
        found = _answers(source, module.stored, examples)
        return _compare(source.task, precision, examples, are_labelled, expected, found)

    return task_loss


def _examples(task, eval_data):
    if eval_data is not None:
        return task.read_file(eval_data, labelled=True)[:NUM_EXAMPLES], True
    try:
        return task.read(task.dev_splits[0])[:NUM_EXAMPLES], True
    except InputError as error:
        logger.info("no development examples (%s): comparing on documentation", error)
    texts = (document.paragraphs[0] for document in installed_documentation())
    texts = list(itertools.islice((text for text in texts if text.strip()), NUM_EXAMPLES))
    return typed_examples(task, inputs_of_texts(task.kind, task.takes_pair, texts)), False


def _answers(source, stored, examples):
    task = source.task
    features = task.features(examples, source.tokenizer)

    def model(inputs, training):
        return stored.outputs(inputs)

    predictor = RowPredictor(tf.distribute.get_strategy(), model, task.kind, batch_size=16)
    return task.answers(examples, features, [predictor.predict(features)], source.tuned or None)


def _compare(task, precision, examples, are_labelled, expected, found):
    pairs = list(zip(expected, found, strict=True))
    differences = np.concatenate([_difference(one, other) for one, other in pairs])
    loss = TaskLoss(
        num_predictions=len(examples),
        agreement=float(np.mean([_is_same(one, other) for one, other in pairs])),
        mean_difference=float(differences.mean()),
        largest_difference=float(differences.max()),
        scores=task.scores(examples, found) if are_labelled else {},
        float32_scores=task.scores(examples, expected) if are_labelled else {},
    )
    if loss.agreement < _LEAST_AGREEMENT:
        logger.warning(
            "%s gives the answer of float32 in %.1f%% of the cases only",
            precision,
            100 * loss.agreement,
        )
    return loss


def _is_same(one, other):
    for name in ("label", "choice", "tags", "text"):
        if hasattr(one, name):
            return getattr(one, name) == getattr(other, name)
    return abs(one.score - other.score) < 0.01


def _difference(one, other):
    """Returns how far the numbers of two answers are apart, float [1 or more]."""
    for name in ("score", "probabilities", "probability"):
        if hasattr(one, name):
            values = [getattr(answer, name) for answer in (one, other)]
            if isinstance(values[0], dict):
                values = [list(value.values()) for value in values]
            return np.abs(np.subtract(*map(np.atleast_1d, values)))
    raise TypeError(f"{type(one).__name__} holds no number")
