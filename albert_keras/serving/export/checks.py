"""Checks of a version before it gets its name, and what reduced precision costs.

A SavedModel must return what its functions return in memory, and the answers of the model: the same
labels and texts, and probabilities that differ by rounding only. What reduced precision costs is
measured against the same model in float32.
"""

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
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
#: Texts or examples that variants are compared on.
NUM_TEXTS = 256
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
) -> float:
    """Checks that each signature returns for a batch what its function does for each text alone.

    Returns the largest difference of a number, relative to its size if that is above 1;
    RuntimeError if it is more than rounding or not finite, or if anything else differs.

    Args:
        functions: The tf.functions in memory that were saved, by the names of the signatures.
        call: As `Predictor.call`.
        precision: Of the weights, see `ROUNDING`.
    """
    largest, tolerance = 0.0, ROUNDING[precision]
    progress = CountedProgress(logger, "checking", len(signatures), "signatures")
    for signature in signatures:
        inputs = sample_inputs(signature, _BYTES)
        together = call(signature.name, inputs)
        for row in range(len(_BYTES)):
            alone = {name: tf.constant(rows[row : row + 1]) for name, rows in inputs.items()}
            for name, expected in functions[signature.name](**alone).items():
                # With longer texts in the batch there are more positions, which are padding.
                sizes = [slice(0, size) for size in expected.shape[1:]]
                found = together[name][(slice(row, row + 1), *sizes)]
                given = f"output `{name}` of signature `{signature.name}` for {_BYTES[row]!r:.99}"
                difference = _difference(given, expected.numpy(), found, tolerance)
                largest = max(largest, difference)
        progress.add()
    return largest


def check_answers(model: AlbertForTexts, call: Callable, signatures: Sequence[str]) -> float:
    """Checks that a float32 export answers as the model in memory; as `check_signatures`.

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
    return max(differences)


def _comparable(answer):
    """Returns the fields of an answer, but for texts of which any may come first."""
    return {name: value for name, value in answer._asdict().items() if name != "nbest"}


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
    predictor: Predictor,
    lite_files: dict[str, Path],
) -> dict[str, AccuracyLoss]:
    """Compares the variants of an export with the float32 model.

    Fine-tuned models answer the development examples of the training if they still exist, else
    texts of the demo corpus; pre-trained models fill a mask in these.

    Args:
        precision: Of the SavedModel.
        predictor: Of the SavedModel.
        lite_files: "float16" or "int8" -> `.tflite` file.

    Returns:
        Variant -> AccuracyLoss, such as "int8" or "lite int8"; empty if there is only float32.
    """
    if precision == "float32" and not lite_files:
        return {}
    found = {}
    if isinstance(source.model, AlbertForTexts):
        columns, model = _examples(source), source.model
        expected = model.answers(columns)
        if precision != "float32":
            names = predictor.names
            found[precision] = answers_by_signatures(predictor.ask, names, type(model), columns)
        rows = TextRows(model.preprocessor, columns)
        for name, file in lite_files.items():
            found[f"lite {name}"] = rows.answers(model, LiteModel(file).predict(rows))
    else:
        texts, module = masked_texts(), source.string_model("float32")
        fill_mask = module.functions["fill_mask"]

        def ask(_, text):
            return {name: value.numpy() for name, value in fill_mask(tf.constant(text)).items()}

        expected = _likeliest(ask, texts)
        if precision != "float32":
            found[precision] = _likeliest(predictor.ask, texts)
        for name, file in lite_files.items():
            found[f"lite {name}"] = _filled(LiteModel(file), module, texts)
    logger.info("comparing %s with float32", ", ".join(found))
    return {name: loss_of(name, expected, answers) for name, answers in found.items()}


def _likeliest(call, texts):
    """Returns the likeliest piece for the mask of each text, a Candidate."""
    rows = call_by_rows(call, "fill_mask", text=texts)
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
    """Returns short texts of the demo corpus, the word in the middle masked."""
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


def _examples(source):
    """Returns development examples, or examples made of the demo corpus, as texts by name."""
    task = source.task
    try:
        if task is not None:
            return task.columns_of_strings(task.read(task.dev_splits[0])[:NUM_TEXTS])
    except InputError as error:
        logger.info("no development examples (%s): comparing on the text of the demo", error)
    return columns_of_texts(source.model, _demo_texts())


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
