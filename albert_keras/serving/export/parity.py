"""Does the graph over strings return the same answers as the Python path?

The Python path is that of training and evaluation: `Tokenizer`, sequences built in NumPy, the Keras
model. Both must return the same ids, labels and texts, and probabilities that differ by rounding
only.
"""

import itertools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.finetuning.finetuned import typed_examples
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.task_answers import TaskPredictor, answer_by_signatures, call_by_rows
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import CLASSIFICATION, REGRESSION, TAGGING
from albert_keras.tasks.pair_features import pair_features

#: Maximum difference of probabilities: float32, rounded in another order.
TOLERANCE = 1e-5
#: Maximum difference of other numbers, which are not bounded, relative to their size.
_RELATIVE = 1e-4


class Parity(NamedTuple):
    """Result of a comparison.

    Attributes:
        num_texts: int. Inputs compared.
        largest_difference: float. Between two numbers; those above 1 relative to their size.
    """

    num_texts: int
    largest_difference: float


class ParityError(RuntimeError):
    """The graph returns another answer than Python."""


def check_parity(source, call, inputs):
    """Compares the signatures over strings of a float32 export with the Python path.

    Args:
        source: ExportSource.
        call: callable. Name of a signature, and lists of str by name → dict of np.ndarray [B, ...].
        inputs: list of str (pre-trained) or of dict of str (fine-tuned), none longer than the graph
            reads, see `TextPacker.max_bytes`.

    Returns:
        Parity.

    Raises:
        ParityError: If an id, label or text differs, or a number differs by more than rounding; the
            message names signature and input.
    """
    if source.task is not None:
        differences = _compare_task(source, call, inputs)
    else:
        differences = itertools.chain(
            _compare_masks(source, call, inputs), _compare_order(source, call, inputs)
        )
    return Parity(len(inputs), max(differences, default=0.0))


def check_ids(source, call, texts):
    """Compares token ids, whatever the precision of the export; arguments as of `check_parity`.

    Nothing is compared for tasks whose sequences contain more than one text.

    Returns:
        int. Texts compared.
    """
    task, tokenizer = source.task, source.tokenizer
    if task is not None and (task.takes_pair or task.kind not in (CLASSIFICATION, REGRESSION)):
        return 0
    for text, answer in zip(texts, call_by_rows(call, "explain_tokens", text=texts), strict=True):
        ids = tokenizer.encode(text)[: source.max_seq_length - 2]
        expected = [tokenizer.cls_id, *ids, tokenizer.sep_id]
        found = answer["ids"][: np.count_nonzero(answer["pieces"] != b"")].tolist()
        _check_equal("explain_tokens", text, "ids", expected, found)
    return len(texts)


def _masked_sequence(tokenizer, text, max_seq_length):
    """Returns the ids of a text with masks, and the positions of the masks."""
    first, *others = text.split(MASK_LITERAL)
    ids = tokenizer.encode(first)
    for part in others:
        ids += [tokenizer.mask_id, *tokenizer.continuation_ids(part)]
    ids = [tokenizer.cls_id, *ids[: max_seq_length - 2], tokenizer.sep_id]
    return ids, [position for position, id in enumerate(ids) if id == tokenizer.mask_id]


def _compare_masks(source, call, texts):
    """Yields differences of the probabilities of fill_mask."""
    for text, answer in zip(texts, call_by_rows(call, "fill_mask", text=texts), strict=True):
        ids, positions = _masked_sequence(source.tokenizer, text, source.max_seq_length)
        shown = answer["scores"][: text.count(MASK_LITERAL)]
        num_filled = int((shown[:, 0] > 0).sum())
        _check_equal("fill_mask", text, "the number of masks", len(positions), num_filled)
        if not positions:
            continue
        inputs = {"input_ids": [ids], "masked_lm_positions": [positions]}
        logits = source.model({name: tf.constant(rows) for name, rows in inputs.items()})
        expected = tf.nn.softmax(logits["masked_lm_logits"])[0].numpy()  # [masks, V]
        best = -np.sort(-expected, axis=1)
        found = zip(answer["pieces"], answer["scores"], strict=True)
        for mask, (pieces, scores) in enumerate(itertools.islice(found, len(positions))):
            # Equally likely pieces may be in any order: each must have its own probability, and
            # the probabilities must be the largest ones.
            ids_found = [source.tokenizer.id_of(piece.decode()) for piece in pieces]
            yield _difference("fill_mask", text, scores, expected[mask, ids_found])
            yield _difference("fill_mask", text, scores, best[mask, : len(scores)])


def _compare_order(source, call, texts):
    """Yields differences of the probabilities of sentence_order, for each text and the next."""
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
        yield _difference("sentence_order", first, answer["in_order"], expected)


def _compare_task(source, call, inputs):
    """Yields differences of all numbers in the answers of a task."""
    task = source.task
    examples = typed_examples(task, inputs)
    predictor = TaskPredictor(task, source.tokenizer, source.model, source.tuned)
    answers = predictor.answers(examples)
    if task.kind.finds_spans:
        yield from _compare_spans(call, examples, answers)
        return
    found = answer_by_signatures(call, task, examples)
    for given, one, other in zip(inputs, answers, found, strict=True):
        if task.kind is TAGGING:
            one, other = _same_words(one, other)
        yield _compare_values(task.kind.name, given, one._asdict(), other._asdict())


def _same_words(expected, found):
    """Truncates two TagAnswers to the words that the graph tags, at most one sequence."""
    count = sum(tag != "" for tag in found.tags)
    return [
        answer._replace(tags=answer.tags[:count], probabilities=answer.probabilities[:count])
        for answer in (expected, found)
    ]


def _compare_spans(call, examples, answers):
    name = "question_answering"
    questions = [example.question for example in examples]
    contexts = [example.context for example in examples]
    found = call_by_rows(call, name, question=questions, context=contexts)
    for question, answer, other in zip(questions, answers, found, strict=True):
        text = "" if answer.start is None else answer.text
        _check_equal(name, question, "answer", text, other["answer"].decode())
        for key in ("start", "end"):
            value = getattr(answer, key)
            _check_equal(name, question, key, -1 if value is None else value, int(other[key]))
        if answer.null_score is not None:
            yield _difference(name, question, other["null_score"], answer.null_score, _RELATIVE)


def _compare_values(name, given, expected, found):
    """Returns the largest difference of numbers anywhere in two plain values."""
    if isinstance(expected, dict):
        _check_equal(name, given, "names", sorted(expected), sorted(found))
        values = [_compare_values(name, given, expected[key], found[key]) for key in expected]
        return max(values, default=0.0)
    if isinstance(expected, tuple | list):
        _check_equal(name, given, "number of values", len(expected), len(found))
        pairs = zip(expected, found, strict=True)
        return max((_compare_values(name, given, one, other) for one, other in pairs), default=0.0)
    if isinstance(expected, float):
        return _difference(name, given, found, expected)
    _check_equal(name, given, "value", expected, found)
    return 0.0


def _difference(name, given, found, expected, tolerance=TOLERANCE):
    """Returns the largest difference of numbers; those above 1 relative to their size."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    difference = float((np.abs(found - expected) / np.maximum(np.abs(expected), 1)).max(initial=0))
    if not difference <= tolerance:
        raise ParityError(
            f"`{name}` does not answer as the Python path: a number differs by {difference:.2g} "
            f"for {given!r:.200}."
        )
    return difference


def _check_equal(name, given, what, expected, found):
    if expected != found:
        raise ParityError(
            f"`{name}` does not answer as the Python path: for {given!r:.200}, {what} must be "
            f"{expected!r:.200}. Received: {found!r:.200}."
        )
