"""Checks of a version before it gets its name, so that nothing broken is ever published.

The graph over strings must return the same answers as the Python path, which is used in training
and evaluation: `Tokenizer`, sequences built in NumPy, the Keras model. Both must return the same
ids, labels and texts, and probabilities that differ by rounding only.
"""

import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.graph.string_model import StringModel
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.saved_model.signature_methods import Signature, read_signatures
from albert_keras.serving.saved_model.warm_up import sample_inputs
from albert_keras.serving.task_answers import TaskPredictor, answer_by_signatures, call_by_rows
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kind import TaskKind
from albert_keras.tasks.kinds import TAGGING
from albert_keras.tasks.pair_features import pair_features
from albert_keras.tasks.typed_examples import typed_examples
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
#: Maximum difference of other numbers, which are not bounded, relative to their size.
_RELATIVE = 1e-4
_SHORT = (b"", b"a [MASK].", b"\xff")
_LONG = b"much longer than its neighbours are, \t " * 8


class Parity(NamedTuple):
    """Difference between the graph and the Python path."""

    num_texts: int  #: Inputs compared.
    largest_difference: float  #: Between two numbers; those above 1 relative to their size.


def check_inputs(kind: TaskKind | None, takes_pair: bool = False) -> list[str] | list[dict]:
    """Returns the inputs that a model is checked with.

    Without a kind they are texts for a pre-trained model, most of them with masks; else inputs of
    `Task.example`.
    """
    if kind is None:
        masked = [f"{MASK_LITERAL} {text[: len(text) // 2]}{MASK_LITERAL}" for text in TEXTS]
        return [*masked, TEXTS[0]]
    return inputs_of_texts(kind, takes_pair, [text for text in TEXTS if text.strip()])


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


class LoadedModel:
    """The SavedModel of a version, whose signatures are called by name."""

    def __init__(self, folder: Path):
        self.model = tf.saved_model.load(str(folder))
        self.signatures = read_signatures(folder)

    def call(self, name, inputs):
        """Calls a signature: arrays or lists [B, ...] by name → dict of arrays [B, ...]."""
        return _call(self.model.signatures[name], inputs)

    def ask(self, name, **texts):
        """Calls a signature: lists of str by name → dict of arrays [B, ...]."""
        return self.call(name, {key: tf.constant(one, tf.string) for key, one in texts.items()})


def _call(function, inputs):
    tensors = {name: tf.constant(value) for name, value in inputs.items()}
    return {name: value.numpy() for name, value in function(**tensors).items()}


def check_answers(
    source: ExportSource, module: StringModel, loaded: LoadedModel, precision: str
) -> Parity | None:
    """Checks that a SavedModel answers as the Python path, and each text as if it were alone.

    If it is not float32, it is compared with the model that was saved instead. RuntimeError if an
    answer differs.

    Args:
        module: The model that was saved.
        loaded: The same model, loaded again.

    Returns:
        Difference from the Python path; None unless the export is float32, whose weights are the
        same as in Python.
    """
    task, tolerance = source.task, _ROUNDING[precision]
    check_ids(source, loaded.ask, list(TEXTS))
    parity = None
    if precision == "float32":
        inputs = check_inputs(task and task.kind, task is not None and task.takes_pair)
        parity = check_parity(source, loaded.ask, inputs)
    functions = module.functions | module.token_functions
    progress = CountedProgress(logger, "checking", len(loaded.signatures), "signatures")
    for signature in loaded.signatures:
        check_neighbours(signature, loaded.call, tolerance)
        if parity is None:
            inputs = sample_inputs(signature, list(_SHORT))
            saved = _call(functions[signature.name], inputs)
            found = loaded.call(signature.name, inputs)
            _check_same(signature.name, found, saved, tolerance, "after it is loaded")
        progress.add()
    return parity


def check_neighbours(signature: Signature, call: Callable, tolerance: float) -> None:
    """Checks that the answer to a text does not depend on the other texts in its batch.

    `call` is as `LoadedModel.call`; numbers may differ by `tolerance`, relative to 1 or their size.
    """
    texts = [b"a [MASK] here", _LONG, b""]
    together = call(signature.name, sample_inputs(signature, texts))
    for row, text in enumerate(texts):
        alone = call(signature.name, sample_inputs(signature, [text]))
        in_batch = {}
        for name, value in alone.items():
            # With longer texts in the batch there are more positions, which are padding.
            shown = tuple(slice(0, size) for size in value.shape[1:])
            in_batch[name] = together[name][row : row + 1][(slice(None), *shown)]
        _check_same(signature.name, in_batch, alone, tolerance, "in a batch with other texts")


def _check_same(name, found, expected, tolerance, when):
    if set(found) != set(expected):
        raise RuntimeError(f"`{name}` returns {sorted(found)} and not {sorted(expected)} {when}")
    for output, value in expected.items():
        other = found[output]
        if other.shape != value.shape:
            raise RuntimeError(
                f"`{name}` returns `{output}` of shape {other.shape} and not {value.shape} {when}"
            )
        if value.dtype.kind == "f":
            is_same = np.allclose(other, value, rtol=tolerance, atol=tolerance)
        else:
            is_same = np.array_equal(other, value)
        if not is_same:
            raise RuntimeError(f"`{name}` returns another `{output}` {when}")


def check_parity(source: ExportSource, call: Callable, inputs: list[str] | list[dict]) -> Parity:
    """Compares the signatures over strings of a float32 export with the Python path.

    Raises RuntimeError if an id, label or text differs, or a number differs by more than rounding.

    Args:
        call: Name of a signature, and lists of str by name → dict of np.ndarray [B, ...].
        inputs: Texts (pre-trained) or inputs of `Task.example` (fine-tuned), none longer than the
            graph reads, see `TextPacker.max_bytes`.
    """
    if source.task is not None:
        differences = _compare_task(source, call, inputs)
    else:
        differences = itertools.chain(
            _compare_masks(source, call, inputs), _compare_order(source, call, inputs)
        )
    return Parity(len(inputs), max(differences, default=0.0))


def check_ids(source: ExportSource, call: Callable, texts: list[str]) -> int:
    """Compares token ids, whatever the precision of the export; arguments as of `check_parity`.

    Nothing is compared for tasks whose sequences contain more than one text. Returns the number of
    texts compared.
    """
    task, tokenizer = source.task, source.tokenizer
    if task is not None and (task.fields != ("text",) or task.kind is TAGGING):
        return 0
    for text, answer in zip(texts, call_by_rows(call, "explain_tokens", text=texts), strict=True):
        ids = tokenizer.encode(text)[: source.max_seq_length - 2]
        expected = [tokenizer.cls_id, *ids, tokenizer.sep_id]
        found = answer["ids"][: np.count_nonzero(answer["pieces"] != b"")].tolist()
        _check_equal("explain_tokens", text, "ids", expected, found)
    return len(texts)


def _masked_sequence(tokenizer, text, max_seq_length):
    """Returns the ids of a text with masks, and the positions of the masks."""
    *before, last = text.split(MASK_LITERAL)
    first, *others = [*map(tokenizer.before_mask, before), last]
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
        yield _compare_values(task.kind.name, given, one._asdict(), other._asdict())


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
        dropped = int(other["dropped_tokens"])
        _check_equal(name, question, "dropped_tokens", answer.dropped_tokens, dropped)
        if answer.null_score is not None:
            yield _difference(name, question, other["null_score"], answer.null_score, _RELATIVE)


def _compare_values(name, given, expected, found):
    """Returns the largest difference of numbers anywhere in two plain values."""
    if isinstance(expected, dict):
        _check_equal(name, given, "names", sorted(expected), sorted(found))
        expected, found = list(expected.values()), [found[key] for key in expected]
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
        raise RuntimeError(
            f"`{name}` does not give the same answer as the Python code: a number differs by "
            f"{difference:.2g} for {given!r:.200}."
        )
    return difference


def _check_equal(name, given, what, expected, found):
    if expected != found:
        raise RuntimeError(
            f"`{name}` does not give the same answer as the Python code: for {given!r:.200}, "
            f"{what} must be {expected!r:.200}. Received: {found!r:.200}."
        )
