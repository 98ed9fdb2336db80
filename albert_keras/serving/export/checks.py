"""Checks of a version before it gets its name, so that nothing broken is ever published.

The graph over strings must return the same answers as the Python path, which is used in training
and evaluation: `Tokenizer`, sequences built in NumPy, the Keras model. Both must return the same
ids, labels and texts, and probabilities that differ by rounding only.
"""

import itertools
import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.special
import tensorflow as tf

from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.signatures import Signature, sample_inputs
from albert_keras.serving.task_answers import CHOICES, ROWS, answer_by_signatures, call_by_rows
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.given import typed_examples
from albert_keras.tasks.kinds import TAGGING, TaskKind
from albert_keras.tasks.pair_features import pair_features
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.task import Task
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

#: Texts as users send them. One is longer than most models read, none is longer than
#: `TextPacker.max_bytes` of the shortest sequence, so that both paths read the same.
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
_ROUNDING = {"float32": 1e-4, "bfloat16": 5e-2, "int8": 1e-3}
#: Maximum difference of probabilities from the Python path: float32, rounded in another order.
TOLERANCE = 1e-5
#: Batches that users may send: nothing, bytes that are not UTF-8, a NUL, text that looks like
#: special tokens, one that is longer than its neighbours; and far too much text, in a batch of its
#: own, as rows are padded to the longest.
_HOSTILE = (
    (
        b"a [MASK] here",
        b"much longer than its neighbours are, \t " * 8,
        b"",
        b"\xff\xfe \xc3\x28 \xed\xa0\x80",
        b"nul \0 byte",
        "[CLS] A [MASK] [SEP] <unk> \u202e \U0001f469\u200d\U0001f52c".encode(),
    ),
    (b"much too long " * 2000,),
)


class Parity(NamedTuple):
    """Difference between the graph and the Python path."""

    num_texts: int  #: Inputs compared.
    largest_difference: float  #: Between two numbers; those above 1 relative to their size.


def check_inputs(task: Task | None) -> list[str] | list[dict]:
    """Returns the inputs that a model is checked with.

    Without a task they are texts for a pre-trained model, most of them with masks; else inputs of
    `Task.example`.
    """
    if task is None:
        masked = [f"{MASK_LITERAL} {text[: len(text) // 2]}{MASK_LITERAL}" for text in TEXTS]
        return [*masked, TEXTS[0]]
    return inputs_of_texts(task.kind, task.takes_pair, [text for text in TEXTS if text.strip()])


def inputs_of_texts(kind: TaskKind, takes_pair: bool, texts: list[str]) -> list[dict]:
    """Creates an input for a fine-tuned model from each text; no text is blank."""
    if kind.has_options:
        return [
            {"context": text, "question": _QUESTION, "options": list(_OPTIONS)} for text in texts
        ]
    if kind.finds_spans:
        return [{"context": text, "question": _QUESTION} for text in texts]
    if takes_pair:
        others = texts[1:] + texts[:1]
        return [{"text": one, "pair": other} for one, other in zip(texts, others, strict=True)]
    return [{"text": text} for text in texts]


def check_answers(
    source: ExportSource, precision: str, predictor: Predictor, signatures: list[Signature]
) -> Parity | None:
    """Checks that a SavedModel answers as the Python path, and each text as if it were alone.

    RuntimeError if an answer differs.

    Returns:
        Difference from the Python path; None unless the export is float32, whose weights are the
        same as in Python. See `compare` for others.
    """
    tolerance, parity = _ROUNDING[precision], None
    largest_difference(_ids(source, predictor.ask, list(TEXTS)))
    if precision == "float32":
        parity = check_parity(source, predictor.ask, check_inputs(source.task))
    progress = CountedProgress(logger, "checking", len(signatures), "signatures")
    for signature in signatures:
        check_signature(signature, predictor.call, tolerance)
        progress.add()
    return parity


def check_signature(signature: Signature, call: Callable, tolerance: float) -> None:
    """Checks that a signature returns one row per text, of finite numbers, whatever users send.

    And that a row does not depend on the other texts of its batch. RuntimeError if it does.

    Args:
        call: As `Predictor.call`.
        tolerance: Largest difference of numbers, relative to 1 or their size.
    """
    for texts in _HOSTILE:
        together = call(signature.name, sample_inputs(signature, list(texts)))
        for name, answer in together.items():
            where = f"output `{name}` of signature `{signature.name}`"
            if not answer.ndim or len(answer) != len(texts):
                raise RuntimeError(f"{where} has shape {answer.shape} for {len(texts)} rows")
            if answer.dtype.kind == "f" and not np.isfinite(answer).all():
                raise RuntimeError(f"{where} is not finite")
        for row, text in enumerate(texts if len(texts) > 1 else ()):
            alone = call(signature.name, sample_inputs(signature, [text]))
            for name, value in alone.items():
                # With longer texts in the batch there are more positions, which are padding.
                shown = tuple(slice(0, size) for size in value.shape[1:])
                found = together[name][row : row + 1][(slice(None), *shown)]
                is_same = found.shape == value.shape
                if is_same and value.dtype.kind == "f":
                    is_same = np.allclose(found, value, rtol=tolerance, atol=tolerance)
                elif is_same:
                    is_same = np.array_equal(found, value)
                if not is_same:
                    raise RuntimeError(
                        f"`{signature.name}` returns another `{name}` in a batch with other texts"
                    )


def check_parity(source: ExportSource, call: Callable, inputs: list[str] | list[dict]) -> Parity:
    """Compares the signatures over strings of a float32 export with the Python path.

    Raises RuntimeError if an id, label or text differs, or a number differs by more than rounding.

    Args:
        call: Name of a signature, and lists of str by name → dict of np.ndarray [B, ...].
        inputs: Texts (pre-trained) or inputs of `Task.example` (fine-tuned), none longer than the
            graph reads, see `TextPacker.max_bytes`.
    """
    if source.task is not None:
        pairs = _task_answers(source, call, inputs)
    else:
        pairs = itertools.chain(_masks(source, call, inputs), _order(source, call, inputs))
    return Parity(len(inputs), largest_difference(pairs))


def _ids(source, call, texts):
    """Yields the ids of texts, unless the sequences of the task contain more than one text.

    Each item is a text, the answer of the Python path, and the answer of the graph; so it is for
    the following functions.
    """
    task, tokenizer = source.task, source.tokenizer
    if task is not None and (task.fields != ("text",) or task.kind is TAGGING):
        return
    for text, answer in zip(texts, call_by_rows(call, "explain_tokens", text=texts), strict=True):
        ids = tokenizer.encode(text)[: source.max_seq_length - 2]
        found = answer["ids"][: np.count_nonzero(answer["pieces"] != b"")].tolist()
        yield text, [tokenizer.cls_id, *ids, tokenizer.sep_id], found


def _masks(source, call, texts):
    """Yields the probabilities of the pieces of all masks."""
    for text, answer in zip(texts, call_by_rows(call, "fill_mask", text=texts), strict=True):
        ids, positions = masked_sequence(source.tokenizer, text, source.max_seq_length)
        shown = answer["scores"][: text.count(MASK_LITERAL)]
        yield text, len(positions), int((shown[:, 0] > 0).sum())
        if not positions:
            continue
        expected = masked_probabilities(source.model, ids, positions)
        for probabilities, pieces, scores in zip(expected, answer["pieces"], shown, strict=False):
            # Equally likely pieces may be in any order: each must have its own probability, and
            # the probabilities must be the largest ones.
            of_pieces = [source.tokenizer.id_of(piece.decode()) for piece in pieces]
            yield text, probabilities[of_pieces].tolist(), scores.tolist()
            yield text, (-np.sort(-probabilities)[: len(scores)]).tolist(), scores.tolist()


def masked_probabilities(model, ids, positions):
    """Returns the probabilities of all pieces at the masks of a sequence, float32 [masks, V]."""
    inputs = {"input_ids": tf.constant([ids]), "masked_lm_positions": tf.constant([positions])}
    return tf.nn.softmax(model(inputs)["masked_lm_logits"])[0].numpy()


def masked_sequence(tokenizer, text, max_seq_length):
    """Returns the ids of a text with masks, and the positions of the masks."""
    *before, last = text.split(MASK_LITERAL)
    first, *others = [*map(tokenizer.before_mask, before), last]
    ids = tokenizer.encode(first)
    for part in others:
        ids += [tokenizer.mask_id, *tokenizer.continuation_ids(part)]
    ids = [tokenizer.cls_id, *ids[: max_seq_length - 2], tokenizer.sep_id]
    return ids, [position for position, id in enumerate(ids) if id == tokenizer.mask_id]


def _order(source, call, texts):
    """Yields the probabilities of the order of each text and the next, if the model has them."""
    if source.model.sentence_order_head is None:
        return
    seconds = texts[1:] + texts[:1]
    answers = call_by_rows(call, "sentence_order", first=texts, second=seconds)
    for first, second, answer in zip(texts, seconds, answers, strict=True):
        pair = [TextExample("0", first, second)]
        inputs = pair_features(pair, source.tokenizer, source.max_seq_length)
        inputs |= {"masked_lm_positions": [[0]]}
        outputs = source.model({name: tf.constant(rows) for name, rows in inputs.items()})
        expected = tf.nn.softmax(outputs["sentence_order_logits"])[0, 0].numpy()
        yield first, float(expected), float(answer["in_order"])


def _task_answers(source, call, inputs):
    """Yields the answers of a task."""
    examples = typed_examples(source.task, inputs)
    expected = answer_in_python(source, examples)
    found = answer_by_signatures(call, source.task, examples, source.tuned)
    for given, *answers in zip(inputs, expected, found, strict=True):
        yield given, *(_comparable(answer) for answer in answers)


def answer_in_python(source: ExportSource, examples: list) -> list:
    """Answers examples of the task by the Python code, whose sequences are built in NumPy."""
    task, strategy = source.task, tf.distribute.get_strategy()
    features = task.features(examples, source.tokenizer)
    rows = CHOICES if task.kind.has_options else ROWS
    outputs = RowPredictor(strategy, source.model, task.kind, rows).predict(features)
    return task.answers(examples, features, outputs, source.tuned or None)


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
