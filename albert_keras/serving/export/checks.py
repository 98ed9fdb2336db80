"""Checks of a version before it gets its name, and what reduced precision costs.

A SavedModel must return what its functions return in memory, and the answers of the model: the same
labels and texts, and probabilities that differ by rounding only. What reduced precision costs is
measured against the same model in float32.
"""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.special
import tensorflow as tf

from albert_keras.demo_corpus import demo_documents
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.models.text_rows import TextRows
from albert_keras.serving.calls import answers_by_signatures, call_by_rows
from albert_keras.serving.export.lite import LiteModel
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.predictor import Candidate, Predictor
from albert_keras.serving.saved_model.signatures import Signature, sample_inputs
from data_pipeline.errors import InputError
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

#: Texts as users send them; one is longer than most models read.
TEXTS = (
    "The ferry left the harbour before sunrise.",
    "",
    " \t two  words\u00a0",
    "Rain had washed the chalk marks from the wall, and nobody in the village wondered why; " * 2,
    "Ｆｕｌｌ ｗｉｄｔｈ ½ ﬁne №4 İstanbul",
    "Grüße aus Köln, où l'été est là: Ελλάδα, Россия, 東京, עברית",
    "emoji \U0001f469\u200d\U0001f52c\U0001f600 and a NUL \0 and \u202eright to left",
    "[CLS] [SEP] <unk> <pad> ▁ ▁▁ 12,345.67, e-mail@example.org",
)
_QUESTION, _OPTIONS = "What left the harbour _ ?", ("the ferry", "", "Rain, sunrise \U0001f600")

#: The same with masks, as bytes, and bytes that are not UTF-8.
_BYTES = [f"{MASK_LITERAL} {text[: len(text) // 2]}{MASK_LITERAL}".encode() for text in TEXTS]
_BYTES += [b"", b"\xff\xfe \xc3\x28 \xed\xa0\x80"]

#: Maximum difference of numbers, relative to 1 or their size, of a row alone and one among others.
ROUNDING = {"float32": 1e-4, "bfloat16": 5e-2, "int8": 1e-3}
#: Maximum difference of probabilities from the model in memory: rounded in another order.
TOLERANCE = 1e-5
#: Texts or examples that variants are compared on, and fewer if the run's own precision is the only
#: variant, since then the comparison is part of a plain export.
NUM_TEXTS, NUM_OF_RUN = 256, 32
#: Words of a text in which one is masked.
_FEWEST_WORDS, _MOST_WORDS = 5, 16
#: Proportion of equal answers below which something is probably wrong.
_MIN_AGREEMENT = 0.9


class Parity(NamedTuple):
    """Difference between a SavedModel and the model in memory."""

    num_texts: int  #: Texts compared.
    largest_difference: float  #: Between two numbers; those above 1 relative to their size.


class AccuracyLoss(NamedTuple):
    """Difference between the answers of a variant and of the float32 model."""

    num_predictions: int  #: Texts or examples compared.
    #: Proportion of them with the same answer: most likely piece, label, option, text or tags;
    #: scores are the same if they differ by less than 0.01.
    agreement: float
    mean_difference: float  #: Of the probability of an answer, or of a score.
    largest_difference: float


def columns_of_texts(model: AlbertForTexts, texts: list[str]) -> dict[str, list]:
    """Returns an example for a model of texts for each text, by the names of its preprocessor."""
    count = len(texts)
    columns = {
        "text": texts,
        "context": texts,
        "pair": texts[1:] + texts[:1],
        "question": [_QUESTION] * count,
        "options": [list(_OPTIONS)] * count,
    }
    return {name: columns[name] for name in model.signature_inputs.values()}


def check_signatures(
    functions: Mapping[str, Callable],
    call: Callable,
    signatures: list[Signature],
    precision: str = "float32",
) -> Parity:
    """Checks that each signature returns for a batch what its function does for each text alone.

    RuntimeError if not, or if a number is not finite.

    Args:
        functions: The tf.functions in memory that were saved, by the names of the signatures.
        call: As `Predictor.call`.
        precision: Of the weights, see `ROUNDING`.
    """
    largest, tolerance = 0.0, ROUNDING[precision]
    progress = CountedProgress(logger, "checking", len(signatures), "signatures")
    for signature in signatures:
        inputs, function = sample_inputs(signature, _BYTES), functions[signature.name]
        together = call(signature.name, inputs)
        for row in range(len(_BYTES)):
            specs = function.input_signature
            alone = [tf.constant(inputs[spec.name][row : row + 1]) for spec in specs]
            for name, expected in function(*alone).items():
                # With longer texts in the batch there are more positions, which are padding.
                sizes = [slice(0, size) for size in expected.shape[1:]]
                found = together[name][(slice(row, row + 1), *sizes)]
                given = f"output `{name}` of signature `{signature.name}` for {_BYTES[row]!r:.99}"
                difference = _difference(given, expected.numpy(), found, tolerance)
                largest = max(largest, difference)
        progress.add()
    return Parity(len(_BYTES), largest)


def check_answers(model: AlbertForTexts, call: Callable, signatures: Sequence[str]) -> Parity:
    """Checks that a float32 export answers as the model in memory.

    RuntimeError if a label or text differs, or a number differs by more than rounding.

    Args:
        call: Name of a signature, and lists of str by name → dict of np.ndarray [B, ...].
        signatures: Names of all of them.
    """
    columns = columns_of_texts(model, list(TEXTS))
    expected = model.answers(columns)
    found = answers_by_signatures(call, signatures, type(model), columns)
    differences = [
        _difference(text, _comparable(one), _comparable(other), TOLERANCE)
        for text, one, other in zip(TEXTS, expected, found, strict=True)
    ]
    return Parity(len(TEXTS), max(differences))


def _comparable(answer):
    """Returns an answer as plain values that rounding cannot change much."""
    values = answer._asdict()
    if "nbest" in values:
        # Almost equally likely texts may be in any order.
        values["nbest"] = [text["probability"] for text in values["nbest"]]
    if values.get("null_score") is not None:  # a logit
        values["null_score"] = float(scipy.special.expit(values["null_score"]))
    return values


def _difference(given, expected, found, tolerance):
    """Returns the largest difference of numbers anywhere in two values, which should be equal.

    RuntimeError if it is more than the tolerance, or anything else differs. Differences of numbers
    above 1 are relative to their size.
    """
    if isinstance(expected, dict) and expected.keys() == found.keys():
        pairs = [(one, found[name]) for name, one in expected.items()]
        return max(_difference(given, *pair, tolerance) for pair in pairs)
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape == other.shape:
        if one.dtype.kind == other.dtype.kind == "f":
            differences = np.abs(other - one) / np.maximum(np.abs(one), 1)
            largest = float(differences.max(initial=0.0))
            if largest <= tolerance:  # NaN is not
                return largest
        elif np.array_equal(one, other):
            return 0.0
    raise RuntimeError(
        f"The export does not give the same answer as the Python code for {given!r:.200}: it must "
        f"be {expected!r:.200}. Received: {found!r:.200}."
    )


def compare(
    source: ExportSource,
    precision: str,
    predictor: Predictor | None,
    lite_files: dict[str, Path],
) -> dict[str, AccuracyLoss]:
    """Compares the variants of an export with the float32 model.

    Fine-tuned models answer the development examples of the training if they still exist, else
    texts of the demo corpus; pre-trained models fill a mask in these.
    A run that was trained in another precision is a variant as well, such as "run mixed_bfloat16".

    Args:
        precision: Of the SavedModel.
        predictor: Of the SavedModel, unless that is float32.
        lite_files: "float16" or "int8" -> `.tflite` file.

    Returns:
        Variant -> AccuracyLoss, such as "int8" or "lite int8"; empty if there is only float32.
    """
    variants: dict[str, Callable] = {}
    if precision != "float32" and predictor is not None:
        variants[precision] = partial(_answers, source, predictor=predictor)
    for name, file in lite_files.items():
        variants[f"lite {name}"] = partial(_answers, source, lite=LiteModel(file))
    count = NUM_TEXTS if variants else NUM_OF_RUN
    if source.load_trained is not None:
        model = source.load_trained()
        variants[f"run {model.dtype_policy.name}"] = partial(_answers, source, model=model)
    if not variants:
        return {}
    logger.info("comparing %s with float32", ", ".join(variants))
    inputs: Any = masked_texts()[:count]
    if isinstance(source.model, AlbertForTexts):
        inputs = _examples(source, count)
    expected = _answers(source, inputs)
    return {name: loss_of(name, expected, answers(inputs)) for name, answers in variants.items()}


def _answers(source, inputs, model=None, predictor=None, lite=None):
    """Answers examples, texts by name, or returns the likeliest pieces for masks of texts.

    By the model in memory, unless another one is given.
    """
    model = model or source.model
    if isinstance(model, AlbertForTexts):
        if predictor is not None:
            return answers_by_signatures(predictor.ask, predictor.names, type(model), inputs)
        if lite is not None:
            rows = TextRows(model.preprocessor, inputs)
            return rows.answers(model, lite.predict(rows))
        return model.answers(inputs)
    if predictor is not None:
        rows = call_by_rows(predictor.ask, "fill_mask", text=inputs)
        return [Candidate(row["pieces"][0, 0].decode(), float(row["scores"][0, 0])) for row in rows]
    fill = partial(_masked_probabilities, model) if lite is None else lite.fill_masks
    found = []
    packed, *_ = source.string_model("float32").masked_sequences(tf.constant(inputs))
    for row, mask in zip(packed["input_ids"].numpy(), packed["input_mask"].numpy(), strict=True):
        ids = row[mask > 0]
        positions = np.flatnonzero(ids == source.tokenizer.mask_id)
        if not len(positions):  # the mask is beyond the end of the sequence
            found.append(Candidate("", 0.0))
            continue
        [probabilities] = fill(ids, positions[:1].tolist())
        piece = source.tokenizer.piece_of(int(probabilities.argmax()))
        found.append(Candidate(piece, float(probabilities.max())))
    return found


def _masked_probabilities(model, ids, positions):
    """Returns the probabilities of all pieces at positions of a sequence, [positions, V]."""
    inputs = {"input_ids": tf.constant([ids]), "masked_lm_positions": tf.constant([positions])}
    return tf.nn.softmax(model(inputs)["masked_lm_logits"])[0].numpy()


def loss_of(name: str, expected: list, found: list) -> AccuracyLoss:
    """Compares the answers of a variant with the expected ones; warns if they mostly differ."""
    pairs = list(zip(expected, found, strict=True))
    differences = np.concatenate([_differences(*pair) for pair in pairs])
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
    """Returns texts of the demo corpus, the word in the middle masked."""
    texts = []
    for text in _demo_texts():
        words = text.split()[:_MOST_WORDS]
        if len(words) >= _FEWEST_WORDS:
            words[len(words) // 2] = MASK_LITERAL
            texts.append(" ".join(words))
    return texts


def _demo_texts():
    texts = (document.paragraphs[0] for document in demo_documents())
    return list(itertools.islice((text for text in texts if text.strip()), NUM_TEXTS))


def _examples(source, count):
    """Returns development examples, or examples made of the demo corpus, as texts by name."""
    task = source.task
    try:
        if task is not None:
            return task.columns_of_strings(task.read(task.dev_splits[0])[:count])
    except InputError as error:
        logger.info("no development examples (%s): comparing on the text of the demo", error)
    return columns_of_texts(source.model, _demo_texts()[:count])


def _is_same(one, other):
    for name in ("piece", "label", "labels", "choice", "tags", "text"):
        if hasattr(one, name):
            return getattr(one, name) == getattr(other, name)
    return bool((_differences(one, other) < 0.01).all())


def _differences(one, other):
    """Returns the differences between the numbers of two answers, float [1 or more]."""
    names = ("score", "scores", "probabilities", "probability")
    name = next(name for name in names if hasattr(one, name))
    values = [getattr(answer, name) for answer in (one, other)]
    if isinstance(values[0], dict):
        values = [list(value.values()) for value in values]
    return np.abs(np.subtract(*map(np.atleast_1d, values)))
