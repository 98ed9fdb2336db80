"""Does the graph over strings answer what the Python path answers?

The Python path is that of training and evaluation: `Tokenizer`, rows laid out in NumPy, the Keras
model. Both are to give the same ids, labels and texts, and probabilities that differ by rounding.
"""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.finetuning.finetuned import typed_examples
from albert_keras.finetuning.predicting import RowPredictor
from albert_keras.serving.export.plain_rows import masked_row, order_row
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.signature_answers import answer_by_signatures, ask_rows
from albert_keras.tasks.kinds import CLASSIFICATION, REGRESSION, TAGGING

#: What probabilities may differ by: float32, rounded in another order.
TOLERANCE = 1e-5
#: Other numbers, which have no bound, differ relative to their size.
_RELATIVE = 1e-4


class Parity(NamedTuple):
    """What a comparison found.

    Attributes:
        num_texts: int. Inputs compared.
        largest_difference: float. Of a probability; of other numbers relative to what is larger,
            their size or 1, and a tenth of it.
    """

    num_texts: int
    largest_difference: float


class ParityError(RuntimeError):
    """The graph answers otherwise than Python."""


def check_parity(source, ask, inputs):
    """Compares the signatures over strings of a float32 export with the Python path.

    Args:
        source: ExportSource.
        ask: callable. Name of a signature, and lists of str by name → dict of np.ndarray [B, ...].
        inputs: list of str (pre-trained) or of dict of str (fine-tuned), none longer than the graph
            reads, see `TextPacker.max_bytes`.

    Returns:
        Parity.

    Raises:
        ParityError: If an id, label or text is another, or a number differs by more than rounding;
            it names signature and input.
    """
    if source.task is None:
        differences = itertools.chain(
            _compare_masks(source, ask, inputs), _compare_order(source, ask, inputs)
        )
    else:
        differences = _compare_task(source, ask, inputs)
    return Parity(len(inputs), max(differences, default=0.0))


def check_ids(source, ask, texts):
    """Compares ids of pieces, whatever the precision of the export; arguments as `check_parity`.

    Of tasks whose row is more than a text nothing is compared.

    Returns:
        int. Texts compared.
    """
    task = source.task
    if task is not None and (task.takes_pair or task.kind not in (CLASSIFICATION, REGRESSION)):
        return 0
    room = source.max_seq_length - 2
    tokenizer = source.tokenizer
    for text, answer in zip(texts, ask_rows(ask, "explain_tokens", text=texts), strict=True):
        expected = [tokenizer.cls_id, *tokenizer.encode(text)[:room], tokenizer.sep_id]
        found = answer["ids"][: np.count_nonzero(answer["pieces"] != b"")].tolist()
        _check_equal("explain_tokens", text, "ids", expected, found)
    return len(texts)


def _compare_masks(source, ask, texts):
    """Yields differences of the probabilities of fill_mask."""
    for text, answer in zip(texts, ask_rows(ask, "fill_mask", text=texts), strict=True):
        ids, positions = masked_row(source.tokenizer, text, source.max_seq_length)
        shown = answer["scores"][: text.count(MASK_LITERAL)]
        _check_equal("fill_mask", text, "masks", len(positions), int((shown[:, 0] > 0).sum()))
        if not positions:
            continue
        inputs = {"input_ids": [ids], "masked_lm_positions": [positions]}
        logits = source.model({name: tf.constant(rows) for name, rows in inputs.items()})
        expected = tf.nn.softmax(logits["masked_lm_logits"])[0].numpy()  # [masks, V]
        best = -np.sort(-expected, axis=1)
        found = zip(answer["pieces"], answer["scores"], strict=True)
        for mask, (pieces, scores) in enumerate(itertools.islice(found, len(positions))):
            # Of two that are equally likely either may come first: each has its own probability,
            # and these are the largest there are.
            ids_found = [source.tokenizer.id_of(piece.decode()) for piece in pieces]
            yield _differ("fill_mask", text, scores, expected[mask, ids_found])
            yield _differ("fill_mask", text, scores, best[mask, : len(scores)])


def _compare_order(source, ask, texts):
    """Yields differences of the probabilities of sentence_order, of each text and the next."""
    if source.model.sentence_order_head is None:
        return
    seconds = texts[1:] + texts[:1]
    answers = ask_rows(ask, "sentence_order", first=texts, second=seconds)
    for first, second, answer in zip(texts, seconds, answers, strict=True):
        ids, segments = order_row(source.tokenizer, first, second, source.max_seq_length)
        inputs = {"input_ids": [ids], "segment_ids": [segments], "masked_lm_positions": [[0]]}
        outputs = source.model({name: tf.constant(rows) for name, rows in inputs.items()})
        expected = tf.nn.softmax(outputs["sentence_order_logits"])[0, 0].numpy()
        yield _differ("sentence_order", first, answer["in_order"], expected)


def _compare_task(source, ask, inputs):
    """Yields differences of all numbers in the answers of a task."""
    task = source.task
    examples = typed_examples(task, inputs)
    predictor = RowPredictor(tf.distribute.get_strategy(), source.model, task.kind, batch_size=8)
    features = task.features(examples, source.tokenizer)
    answers = task.answers(examples, features, [predictor.predict(features)], source.tuned or None)
    if task.kind.finds_spans:
        yield from _compare_spans(ask, examples, answers)
        return
    found = answer_by_signatures(ask, task, examples)
    for given, one, other in zip(inputs, answers, found, strict=True):
        if task.kind is TAGGING:
            one, other = _as_far_as_tagged(one, other)
        yield _compare(task.kind.name, given, one._asdict(), other._asdict())


def _as_far_as_tagged(expected, found):
    """Cuts two TagAnswers where the graph ends: it tags one row, Python as many as it takes."""
    count = sum(tag != "" for tag in found.tags)
    return [
        answer._replace(tags=answer.tags[:count], probabilities=answer.probabilities[:count])
        for answer in (expected, found)
    ]


def _compare_spans(ask, examples, answers):
    questions = [example.question for example in examples]
    contexts = [example.context for example in examples]
    found = ask_rows(ask, "question_answering", question=questions, context=contexts)
    for question, answer, other in zip(questions, answers, found, strict=True):
        name = "question_answering"
        text = "" if answer.start is None else answer.text
        _check_equal(name, question, "answer", text, other["answer"].decode())
        for key in ("start", "end"):
            place = getattr(answer, key)
            _check_equal(name, question, key, -1 if place is None else place, int(other[key]))
        if answer.null_score is not None:
            yield _differ(name, question, other["null_score"], answer.null_score, _RELATIVE)


def _compare(name, given, expected, found):
    """Returns the largest difference of numbers anywhere in two plain values."""
    if isinstance(expected, dict):
        _check_equal(name, given, "names", sorted(expected), sorted(found))
        values = [_compare(name, given, expected[key], found[key]) for key in expected]
        return max(values, default=0.0)
    if isinstance(expected, tuple | list):
        _check_equal(name, given, "number of values", len(expected), len(found))
        pairs = zip(expected, found, strict=True)
        return max((_compare(name, given, one, other) for one, other in pairs), default=0.0)
    if isinstance(expected, float):
        return _differ(name, given, found, expected)
    _check_equal(name, given, "value", expected, found)
    return 0.0


def _differ(name, given, found, expected, tolerance=TOLERANCE):
    """Returns the largest difference of numbers, those above 1 relative to their size."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    difference = float((np.abs(found - expected) / np.maximum(np.abs(expected), 1)).max(initial=0))
    if not difference <= tolerance:
        raise ParityError(
            f"`{name}` should answer as the Python path does, but a number differs by "
            f"{difference:.2g} for {given!r:.200}"
        )
    return difference


def _check_equal(name, given, what, expected, found):
    if expected != found:
        raise ParityError(
            f"`{name}` should answer as the Python path does, but for {given!r:.200} {what} should "
            f"be {expected!r:.200}. Received: {found!r:.200}."
        )
