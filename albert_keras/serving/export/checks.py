"""Checks of a version before it gets its name, and what reduced precision costs.

A SavedModel must return the same answers as the model in memory, whose functions it has: the same
labels and texts, and probabilities that differ by rounding only. What reduced precision costs is
measured against the same model in float32.
"""

import itertools
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.special
import tensorflow as tf

from albert_keras.demo_corpus import demo_documents
from albert_keras.models.preprocessor import AlbertPreprocessor
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.models.text_rows import TextRows
from albert_keras.serving.calls import answers_by_signatures, call_by_rows
from albert_keras.serving.export.lite import LiteModel
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.predictor import Candidate, Predictor
from albert_keras.serving.saved_model.signatures import Signature, check_signature
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

#: Maximum difference of answers, relative to 1 or their size, for each precision: of the same graph
#: run twice.
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

    num_texts: int  #: Inputs compared.
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


def check_answers(
    source: ExportSource, precision: str, predictor: Predictor, signatures: list[Signature]
) -> Parity | None:
    """Checks that a SavedModel answers as the model in memory, and each text as if it were alone.

    RuntimeError if an answer differs.

    Returns:
        Difference from the model in memory; None unless the export is float32, whose weights are
        the same. See `compare` for others.
    """
    tolerance, parity = ROUNDING[precision], None
    if precision == "float32":
        parity = check_parity(source, predictor.ask, predictor.names)
    progress = CountedProgress(logger, "checking", len(signatures), "signatures")
    for signature in signatures:
        check_signature(signature, predictor.call, tolerance)
        progress.add()
    return parity


def check_parity(source: ExportSource, call: Callable, signatures: Sequence[str]) -> Parity:
    """Compares the signatures over strings of a float32 export with the model in memory.

    Raises RuntimeError if a label or text differs, or a number differs by more than rounding.

    Args:
        call: Name of a signature, and lists of str by name → dict of np.ndarray [B, ...].
        signatures: Names of all of them.
    """
    texts, model = list(TEXTS), source.model
    if isinstance(model, AlbertForTexts):
        columns = columns_of_texts(model, texts)
        expected = map(_comparable, model.answers(columns))
        found = answers_by_signatures(call, signatures, type(model), columns)
        pairs: Iterable = zip(texts, expected, map(_comparable, found), strict=True)
    else:
        texts = [f"{MASK_LITERAL} {text[: len(text) // 2]}{MASK_LITERAL}" for text in texts]
        pairs = itertools.chain(_masks(source, call, texts), _order(source, call, texts))
    return Parity(len(texts), largest_difference(pairs))


def _masks(source, call, texts):
    """Yields the probabilities of the pieces of all masks."""
    answers = call_by_rows(call, "fill_mask", text=texts)
    for text, expected, answer in zip(texts, masks_in_python(source, texts), answers, strict=True):
        shown = answer["scores"][: text.count(MASK_LITERAL)]
        yield text, len(expected), int((shown[:, 0] > 0).sum())
        for probabilities, pieces, scores in zip(expected, answer["pieces"], shown, strict=False):
            # Equally likely pieces may be in any order: each must have its own probability, and
            # the probabilities must be the largest ones.
            of_pieces = [source.tokenizer.id_of(piece.decode()) for piece in pieces]
            yield text, probabilities[of_pieces].tolist(), scores.tolist()
            yield text, (-np.sort(-probabilities)[: len(scores)]).tolist(), scores.tolist()


def masks_in_python(source: ExportSource, texts: list[str], fill: Callable | None = None):
    """Yields the probabilities of all pieces at the masks of each text that are read, [masks, V].

    `fill` computes them from the ids of a sequence and positions in it; None is the Keras model.
    """
    tokenizer = source.tokenizer
    for text in texts:
        *before, last = text.split(MASK_LITERAL)
        first, *others = [*map(tokenizer.before_mask, before), last]
        ids = tokenizer.encode(first)
        for part in others:
            ids += [tokenizer.mask_id, *tokenizer.continuation_ids(part)]
        ids = [tokenizer.cls_id, *ids[: source.max_seq_length - 2], tokenizer.sep_id]
        positions = [position for position, id in enumerate(ids) if id == tokenizer.mask_id]
        filled = fill or partial(_masked_probabilities, source.model)
        yield filled(ids, positions) if positions else []


def _masked_probabilities(model, ids, positions):
    inputs = {"input_ids": tf.constant([ids]), "masked_lm_positions": tf.constant([positions])}
    return tf.nn.softmax(model(inputs)["masked_lm_logits"])[0].numpy()


def _order(source, call, texts):
    """Yields the probabilities of the order of each text and the next, if the model has them."""
    if source.model.sentence_order_head is None:
        return
    seconds = texts[1:] + texts[:1]
    rows = AlbertPreprocessor(source.tokenizer, source.max_seq_length)
    packer = rows.packer(is_fixed=False)
    answers = call_by_rows(call, "sentence_order", first=texts, second=seconds)
    for first, second, answer in zip(texts, seconds, answers, strict=True):
        inputs = packer.pack(rows.ids(tf.constant([first])), rows.ids(tf.constant([second])))
        outputs = source.model(inputs | {"masked_lm_positions": tf.zeros([1, 1], tf.int32)})
        expected = tf.nn.softmax(outputs["sentence_order_logits"])[0, 0].numpy()
        yield first, float(expected), float(answer["in_order"])


def _answers(source, inputs, call=None, signatures=(), lite=None):
    """Answers examples, texts by name, or returns the candidates for the first masks of texts.

    With `call` by signatures, by `lite`, a LiteModel, or else by the model in memory.
    """
    model = source.model
    if isinstance(model, AlbertForTexts):
        if call is not None:
            return answers_by_signatures(call, signatures, type(model), inputs)
        if lite is not None:
            rows = TextRows(model.preprocessor, inputs)
            return rows.answers(model, lite.predict(rows))
        return model.answers(inputs)
    if call is not None:
        rows = call_by_rows(call, "fill_mask", text=inputs)
        return [Candidate(row["pieces"][0, 0].decode(), float(row["scores"][0, 0])) for row in rows]
    fill = lite and lite.fill_masks
    masks = [found[0] if len(found) else None for found in masks_in_python(source, inputs, fill)]
    return [
        Candidate("", 0.0)
        if mask is None
        else Candidate(source.tokenizer.piece_of(int(mask.argmax())), float(mask.max()))
        for mask in masks
    ]


def _comparable(answer):
    """Returns an answer as plain values that rounding cannot change much."""
    values = answer._asdict()
    if "nbest" in values:
        # Almost equally likely texts may be in any order.
        values["nbest"] = [text["probability"] for text in values["nbest"]]
    if values.get("null_score") is not None:  # a logit
        values["null_score"] = float(scipy.special.expit(values["null_score"]))
    return values


def largest_difference(pairs):
    """Returns the largest difference of two numbers in pairs of answers that should be equal.

    `pairs` yields what was asked, and the two answers as plain values. RuntimeError if they differ
    by more than rounding.
    """
    return max((_difference(given, *answers) for given, *answers in pairs), default=0.0)


def _difference(given, expected, found):
    """Returns the largest difference of numbers anywhere in two plain values.

    RuntimeError if it is more than rounding, or anything else differs. Differences of numbers above
    1 are relative to their size.
    """
    if isinstance(expected, dict) and isinstance(found, dict) and set(expected) == set(found):
        return max(_difference(given, one, found[name]) for name, one in expected.items())
    is_list = isinstance(expected, list | tuple) and isinstance(found, list | tuple)
    if is_list and len(expected) == len(found):
        return max(map(partial(_difference, given), expected, found), default=0.0)
    if isinstance(expected, float) and isinstance(found, float):
        difference = abs(found - expected) / max(abs(expected), 1)
        if difference <= TOLERANCE:
            return difference
    elif expected == found:
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
        names = predictor.names
        variants[precision] = partial(_answers, source, call=predictor.ask, signatures=names)
    for name, file in lite_files.items():
        variants[f"lite {name}"] = partial(_answers, source, lite=LiteModel(file))
    count = NUM_TEXTS if variants else NUM_OF_RUN
    if source.load_trained is not None:
        model = source.load_trained()
        variants[f"run {model.dtype_policy.name}"] = partial(_answers, source._replace(model=model))
    if not variants:
        return {}
    logger.info("comparing %s with float32", ", ".join(variants))
    inputs: Any = masked_texts()[:count]
    if isinstance(source.model, AlbertForTexts):
        inputs = _examples(source, count)
    expected = _answers(source, inputs)
    return {name: loss_of(name, expected, answers(inputs)) for name, answers in variants.items()}


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
