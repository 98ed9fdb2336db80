"""Compares the answers of an export with those of the float32 model in memory.

A float32 SavedModel must give the same answers; what narrower weights cost is measured.
"""

import itertools
import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.demo_corpus import demo_documents
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.models.text_rows import TextRows
from albert_keras.serving.calls import answers_by_signatures, call_by_rows
from albert_keras.serving.export.lite import LiteModel
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.graph.string_model import StringModel
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.predictor import Candidate, Predictor
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Texts or examples that a float32 export answers as the model in memory.
_NUM_CHECKED = 20
#: Texts or examples that narrower variants are compared on.
_NUM_COMPARED = 256
#: Maximum difference of numbers of float32: rounded in another order.
_TOLERANCE = 1e-5
#: Largest difference of scores that count as the same answer.
_SAME_SCORE = 0.01
#: Fields of answers with numbers; of a kind of one's own they are all numbers with a fraction.
_NUMBERS = ("score", "scores", "probabilities", "probability")
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
    largest_difference: float  #: Of the probability of an answer, or of a score.


def compare(
    source: ExportSource,
    module: StringModel,
    precision: str,
    predictor: Predictor,
    lite_files: dict[str, Path],
) -> dict[str, AccuracyLoss]:
    """Compares the variants of an export with the float32 model.

    Fine-tuned models answer the development examples of the training if they still exist, else
    texts of the demo corpus; pre-trained models fill a mask in these.

    Args:
        module: The float32 model over strings, in memory.
        precision: Of the SavedModel.
        predictor: Of the SavedModel.
        lite_files: "float16" or "int8" -> `.tflite` file.

    Returns:
        Variant -> AccuracyLoss, such as "int8" or "lite int8"; empty if there is only float32.

    Raises:
        RuntimeError: If a float32 SavedModel gives other answers.
    """
    is_alone = precision == "float32" and not lite_files
    columns = _examples(source, _NUM_CHECKED if is_alone else _NUM_COMPARED)
    expected = _expected(source, module, columns)
    losses = {
        precision: loss_of(expected, _answers(source, predictor.ask, predictor.names, columns))
    }
    for name, file in lite_files.items():
        lite = LiteModel(file)
        if isinstance(source.model, AlbertForTexts):
            rows = TextRows(source.model.preprocessor, columns)
            found = rows.answers(source.model, lite.predict(rows))
        else:
            found = _filled(lite, module, columns["text"])
        losses[f"lite {name}"] = loss_of(expected, found)
    exact = losses.pop("float32", None)
    if exact is not None and not (
        exact.agreement == 1 and exact.largest_difference <= _TOLERANCE  # NaN is not
    ):
        raise RuntimeError(f"The export does not give the answers of the Python code: {exact}.")
    for name, loss in losses.items():
        if loss.agreement < _MIN_AGREEMENT:
            share = 100 * loss.agreement
            logger.warning("%s answers as float32 in only %.1f %% of the cases", name, share)
    return losses


def _examples(source, count):
    """Returns at most so many development examples, or texts of the demo corpus, by name."""
    task = source.task
    try:
        if task is not None:
            return task.columns_of_strings(task.read(task.dev_splits[0])[:count])
    except InputError as error:
        logger.info("no development examples (%s): comparing on the text of the demo", error)
    paragraphs = (document.paragraphs[0].split() for document in demo_documents())
    chosen = (words[:_MOST_WORDS] for words in paragraphs if len(words) >= _FEWEST_WORDS)
    rows = [*itertools.islice(chosen, count)]
    if not isinstance(source.model, AlbertForTexts):
        for words in rows:
            words[len(words) // 2] = MASK_LITERAL
    texts = [" ".join(words) for words in rows]
    columns = {
        "text": texts,
        "context": texts,
        "pair": texts[1:] + texts[:1],
        "question": ["What does it return?"] * len(texts),
        "options": [["a text", "a number", "nothing"]] * len(texts),
    }
    names = ["text"]
    if isinstance(source.model, AlbertForTexts):
        names = [*source.model.signature_inputs.values()]
    return {name: columns[name] for name in names}


def _expected(source, module, columns):
    """Returns the answers of the float32 model in memory."""
    if isinstance(source.model, AlbertForTexts):
        return source.model.answers(columns)

    def ask(signature, text):
        answer = module.functions[signature](tf.constant(text))
        return {name: value.numpy() for name, value in answer.items()}

    return _answers(source, ask, (), columns)


def _answers(source, ask, names, columns):
    """Returns the answers of signatures, of a pre-trained model the likeliest piece of a mask."""
    if isinstance(source.model, AlbertForTexts):
        return answers_by_signatures(ask, names, type(source.model), columns)
    rows = call_by_rows(ask, "fill_mask", **columns)
    return [Candidate(row["pieces"][0, 0].decode(), float(row["scores"][0, 0])) for row in rows]


def _filled(lite, module, texts):
    """Returns the same by a LiteModel, which takes the ids of a StringModel."""
    packed, *_ = module.masked_sequences(tf.constant(texts))
    tokenizer, found = module.rows.tokenizer, []
    for row, mask in zip(packed["input_ids"].numpy(), packed["input_mask"].numpy(), strict=True):
        ids, candidate = row[mask > 0], Candidate("", 0.0)  # of a mask beyond the last position
        for probabilities in lite.fill_masks(ids, np.flatnonzero(ids == tokenizer.mask_id)):
            best = int(probabilities.argmax())
            candidate = Candidate(tokenizer.piece_of(best), float(probabilities[best]))
        found.append(candidate)
    return found


def loss_of(expected: list, found: list) -> AccuracyLoss:
    """Compares the answers of a variant with the expected ones."""
    pairs = list(zip(expected, found, strict=True))
    return AccuracyLoss(
        num_predictions=len(pairs),
        agreement=float(np.mean([_is_same(*pair) for pair in pairs])),
        largest_difference=max(float(_differences(*pair).max()) for pair in pairs),
    )


def _is_same(one, other):
    for name in ("piece", "label", "labels", "choice", "tags", "text"):
        if hasattr(one, name):
            return getattr(one, name) == getattr(other, name)
    return bool((_differences(one, other) < _SAME_SCORE).all())


def _differences(one, other):
    """Returns the differences between the numbers of two answers, float [1 or more]."""
    names = [name for name in _NUMBERS if hasattr(one, name)]
    names = names or [name for name in one._fields if isinstance(getattr(one, name), float)]
    values = [getattr(answer, names[0]) for answer in (one, other)]
    if isinstance(values[0], dict):
        values = [list(value.values()) for value in values]
    return np.abs(np.subtract(*map(np.atleast_1d, values)))
