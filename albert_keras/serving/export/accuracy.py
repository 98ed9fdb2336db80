"""What reduced precision costs: the answers of variants of an export, compared with float32."""

import functools
import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.serving.export.checks import (
    answer_in_python,
    inputs_of_texts,
    masked_probabilities,
    masked_sequence,
)
from albert_keras.serving.export.lite import LiteModel
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.predictor import Candidate
from albert_keras.serving.task_answers import answer_by_signatures, call_by_rows
from albert_keras.tasks.given import typed_examples
from data_pipeline.errors import InputError
from data_pipeline.text.installed_docs import installed_documentation

logger = logging.getLogger(__name__)

#: Texts or examples that variants are compared on, and fewer if the run's own precision is the only
#: variant, since then the comparison is part of a plain export.
NUM_TEXTS, NUM_OF_RUN = 256, 32
#: Words of a text in which one is masked.
_FEWEST_WORDS, _MOST_WORDS = 5, 16
#: Proportion of equal answers below which something is probably wrong.
_MIN_AGREEMENT = 0.9


class AccuracyLoss(NamedTuple):
    """Difference between the answers of a variant and of the float32 model."""

    num_predictions: int  #: Texts or examples compared.
    #: Proportion of them with the same answer: most likely piece, label, option, text or tags;
    #: scores are the same if they differ by less than 0.01.
    agreement: float
    mean_difference: float  #: Of the probability of an answer, or of a score.
    largest_difference: float


def compare(
    source: ExportSource, precision: str, call: Callable, lite_files: dict[str, Path]
) -> dict[str, AccuracyLoss]:
    """Compares the variants of an export with the float32 model.

    Fine-tuned models answer the development examples of the training if they still exist, else
    texts of the documentation of installed packages; pre-trained models fill a mask in such texts.
    A run that was trained in another precision is a variant as well, such as "run mixed_bfloat16".

    Args:
        precision: Of the SavedModel.
        call: Calls its signatures, see `call_by_rows`.
        lite_files: "float16" or "int8" -> `.tflite` file.

    Returns:
        Variant -> AccuracyLoss, such as "int8" or "lite int8"; empty if there is only float32.
    """
    variants = {} if precision == "float32" else {precision: _by_signatures(source, call)}
    variants |= {
        f"lite {name}": _by_filling(source, LiteModel(file).fill_mask)
        for name, file in lite_files.items()
    }
    count = NUM_TEXTS if variants else NUM_OF_RUN
    if source.load_trained is not None:
        model = source.load_trained()
        variants[f"run {model.dtype_policy.name}"] = _in_python(source._replace(model=model))
    if not variants:
        return {}
    logger.info("comparing %s with float32", ", ".join(variants))
    inputs = (masked_texts() if source.task is None else _examples(source.task))[:count]
    expected = _in_python(source)(inputs)
    return {name: loss_of(name, expected, answers(inputs)) for name, answers in variants.items()}


def loss_of(name: str, expected: list, found: list) -> AccuracyLoss:
    """Compares the answers of a variant with the expected ones; warns if they mostly differ."""
    pairs = list(zip(expected, found, strict=True))
    differences = np.concatenate([_difference(*pair) for pair in pairs])
    loss = AccuracyLoss(
        num_predictions=len(pairs),
        agreement=float(np.mean([_is_same(*pair) for pair in pairs])),
        mean_difference=float(differences.mean()),
        largest_difference=float(differences.max()),
    )
    if loss.agreement < _MIN_AGREEMENT:
        share = 100 * loss.agreement
        logger.warning("%s answers as float32 in only %.1f %% of the cases", name, share)
    return loss


def masked_texts() -> list[str]:
    """Returns texts of the documentation of installed packages, the word in the middle masked."""
    texts = []
    for text in _documentation():
        words = text.split()[:_MOST_WORDS]
        if len(words) >= _FEWEST_WORDS:
            words[len(words) // 2] = MASK_LITERAL
            texts.append(" ".join(words))
    return texts


def _documentation():
    texts = (document.paragraphs[0] for document in installed_documentation())
    return list(itertools.islice((text for text in texts if text.strip()), NUM_TEXTS))


def _examples(task):
    """Returns development examples, or examples made of documentation."""
    try:
        return task.read(task.dev_splits[0])[:NUM_TEXTS]
    except InputError as error:
        logger.info("no development examples (%s): comparing on documentation", error)
    return typed_examples(task, inputs_of_texts(task.kind, task.takes_pair, _documentation()))


def _by_signatures(source, call):
    """Returns a function of texts or examples to their answers."""
    if source.task is not None:
        return lambda examples: answer_by_signatures(call, source.task, examples, source.tuned)
    return lambda texts: [
        Candidate(row["pieces"][0, 0].decode(), float(row["scores"][0, 0]))
        for row in call_by_rows(call, "fill_mask", text=texts)
    ]


def _in_python(source):
    if source.task is not None:
        return functools.partial(answer_in_python, source)

    return _by_filling(
        source, lambda ids, position: masked_probabilities(source.model, ids, [position])[0]
    )


def _by_filling(source, fill_mask):
    """Returns a function of texts to the candidates of their first masks.

    `fill_mask` is as of LiteModel.
    """
    tokenizer = source.tokenizer

    def fill(text):
        ids, positions = masked_sequence(tokenizer, text, source.max_seq_length)
        if not positions:
            return Candidate("", 0.0)
        probabilities = fill_mask(ids, positions[0])
        best = int(probabilities.argmax())
        return Candidate(tokenizer.piece_of(best), float(probabilities[best]))

    return lambda texts: list(map(fill, texts))


def _is_same(one, other):
    for name in ("piece", "label", "labels", "choice", "tags", "text"):
        if hasattr(one, name):
            return getattr(one, name) == getattr(other, name)
    return bool((_difference(one, other) < 0.01).all())


def _difference(one, other):
    """Returns the differences between the numbers of two answers, float [1 or more]."""
    names = ("score", "scores", "probabilities", "probability")
    name = next(name for name in names if hasattr(one, name))
    values = [getattr(answer, name) for answer in (one, other)]
    if isinstance(values[0], dict):
        values = [list(value.values()) for value in values]
    return np.abs(np.subtract(*map(np.atleast_1d, values)))
