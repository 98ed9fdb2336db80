"""Checks of a version before it gets its name, so that nothing broken is ever published."""

import numpy as np
import tensorflow as tf

from albert_keras.serving.export.parity import check_ids, check_parity
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.saved_model.signature_methods import read_signatures
from albert_keras.serving.saved_model.warm_up import sample_inputs

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
_SHORT = (b"", b"a [MASK].", b"\xff")
_LONG = b"much longer than its neighbours are, \t " * 8
#: Tokens of inputs that are ids.
_LENGTH = 16


def check_inputs(kind, takes_pair=False):
    """Returns the inputs that a model is checked with.

    Args:
        kind: TaskKind or None. None for a pre-trained model.
        takes_pair: bool. Whether the task has a second text.

    Returns:
        list of str, most of them with masks (pre-trained), or of dict, see `Task.example`.
    """
    if kind is None:
        masked = [f"{MASK_LITERAL} {text[: len(text) // 2]}{MASK_LITERAL}" for text in TEXTS]
        return [*masked, TEXTS[0]]
    return inputs_of_texts(kind, takes_pair, [text for text in TEXTS if text.strip()])


def inputs_of_texts(kind, takes_pair, texts):
    """Creates an input for a fine-tuned model from each text (list of str, none blank)."""
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
    """A SavedModel whose signatures are called by name.

    Args:
        folder: Path. Folder of the version.

    Attributes:
        model: Returned by `tf.saved_model.load`.
        signatures: list of Signature.
    """

    def __init__(self, folder):
        self.model = tf.saved_model.load(str(folder))
        self.signatures = read_signatures(folder)

    def call(self, name, inputs):
        """Calls a signature: arrays or lists [B, ...] by name → dict of arrays [B, ...]."""
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        return {key: one.numpy() for key, one in self.model.signatures[name](**tensors).items()}

    def ask(self, name, **texts):
        """Calls a signature: lists of str by name → dict of arrays [B, ...]."""
        return self.call(name, {key: tf.constant(one, tf.string) for key, one in texts.items()})


def check_answers(source, module, loaded, precision):
    """Checks that a SavedModel answers as the Python path, and each text as if it were alone.

    If it is not float32, it is compared with the model that was saved instead.

    Args:
        source: ExportSource.
        module: StringModel. The model that was saved.
        loaded: LoadedModel. The same model, loaded again.
        precision: str. Precision of the export.

    Returns:
        Parity or None. Difference from the Python path; None unless the export is float32, whose
        weights are the same as in Python.

    Raises:
        RuntimeError: If an answer differs.
    """
    task, tolerance = source.task, _ROUNDING[precision]
    check_ids(source, loaded.ask, list(TEXTS))
    parity = None
    if precision == "float32":
        inputs = check_inputs(task and task.kind, task is not None and task.takes_pair)
        parity = check_parity(source, loaded.ask, inputs)
    functions = module.functions | module.token_functions
    for signature in loaded.signatures:
        check_neighbours(signature, loaded.call, tolerance)
        if parity is None:
            inputs = sample_inputs(signature, list(_SHORT), _LENGTH)
            tensors = {key: tf.constant(value) for key, value in inputs.items()}
            saved = {key: one.numpy() for key, one in functions[signature.name](**tensors).items()}
            found = loaded.call(signature.name, inputs)
            _check_same(signature.name, found, saved, tolerance, "after it is loaded")
    return parity


def check_neighbours(signature, call, tolerance):
    """Checks that the answer to a text does not depend on the other texts in its batch.

    Args:
        signature: Signature.
        call: callable. Name of a signature, and arrays [B, ...] by name → dict of arrays [B, ...].
        tolerance: float. Maximum difference of numbers, relative to 1 or their size.

    Raises:
        RuntimeError: If it does.
    """
    texts = [b"a [MASK] here", _LONG, b""]
    together = call(signature.name, sample_inputs(signature, texts, _LENGTH))
    for row, text in enumerate(texts):
        alone = call(signature.name, sample_inputs(signature, [text], _LENGTH))
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
