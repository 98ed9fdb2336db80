"""A version is asked before it gets its name: nothing broken is ever published."""

import numpy as np
import tensorflow as tf

from albert_keras.serving.export.check_inputs import TEXTS, check_inputs
from albert_keras.serving.export.parity import check_ids, check_parity
from albert_keras.serving.saved_model.signature_methods import read_signatures
from albert_keras.serving.saved_model.warm_up import sample_inputs

#: What answers may differ by, relative to 1 or their size: of the same graph run twice, in float32
#: and in bfloat16 or with int8 weights.
_ROUNDING = {"float32": 1e-4, "bfloat16": 5e-2, "int8": 1e-3}
_SHORT = (b"", b"a [MASK].", b"\xff")
_LONG = b"much longer than its neighbours are, \t " * 8
_LENGTH = 16  # of ids


class LoadedModel:
    """A SavedModel that is asked by name, with arrays and lists.

    Args:
        folder: Path. Of the version.

    Attributes:
        model: What `tf.saved_model.load` gives.
        signatures: list of Signature.
    """

    def __init__(self, folder):
        self.model = tf.saved_model.load(str(folder))
        self.signatures = read_signatures(folder)

    def call(self, name, inputs):
        """Asks a signature: arrays [B, ...] by name → dict of arrays [B, ...]."""
        tensors = {key: tf.constant(value) for key, value in inputs.items()}
        return {key: one.numpy() for key, one in self.model.signatures[name](**tensors).items()}

    def ask(self, name, **texts):
        """Asks a signature: lists of str by name → dict of arrays [B, ...]."""
        return self.call(name, {key: tf.constant(one, tf.string) for key, one in texts.items()})


def check_answers(source, module, loaded, precision):
    """Asks a SavedModel what the Python path and single rows are asked.

    One that is not float32 is compared with the model it was made of instead, with all signatures.

    Args:
        source: ExportSource.
        module: StringModel. What was saved.
        loaded: LoadedModel. What it is when it comes back.
        precision: str. Of the export.

    Returns:
        Parity or None. How far it is from the Python path; None unless the export is float32,
        whose weights are those of Python.

    Raises:
        RuntimeError: If something is answered otherwise.
    """
    task = source.task
    inputs = check_inputs(*((None,) if task is None else (task.kind, task.takes_pair)))
    check_ids(source, loaded.ask, list(TEXTS))
    parity = check_parity(source, loaded.ask, inputs) if precision == "float32" else None
    for signature in loaded.signatures:
        check_neighbours(signature, loaded.call, _ROUNDING[precision])
        if parity is None:
            _check_as_meant(signature, module, loaded, _ROUNDING[precision])
    return parity


def _check_as_meant(signature, module, loaded, tolerance):
    """Compares a loaded model with the one that was saved: Python has no such weights."""
    functions = module.functions | module.token_functions
    inputs = sample_inputs(signature, list(_SHORT), _LENGTH)
    meant = functions[signature.name](**{key: tf.constant(one) for key, one in inputs.items()})
    meant = {name: value.numpy() for name, value in meant.items()}
    found = loaded.call(signature.name, inputs)
    _check_same(signature.name, found, meant, tolerance, "once it is loaded")


def check_neighbours(signature, call, tolerance):
    """Makes sure that the answer to a row does not depend on what else is in its batch.

    Args:
        signature: Signature.
        call: callable. Name of a signature, and arrays [B, ...] by name → dict of arrays [B, ...].
        tolerance: float. What numbers may differ by, relative to 1 or their size.

    Raises:
        RuntimeError: If it does.
    """
    texts = [b"a [MASK] here", _LONG, b""]
    together = call(signature.name, sample_inputs(signature, texts, _LENGTH))
    for row, text in enumerate(texts):
        alone = call(signature.name, sample_inputs(signature, [text], _LENGTH))
        beside = {}
        for name, value in alone.items():
            # Beside longer rows there are more places: of padding, without anything in them.
            shown = tuple(slice(0, size) for size in value.shape[1:])
            beside[name] = together[name][row : row + 1][(slice(None), *shown)]
        _check_same(signature.name, beside, alone, tolerance, "beside other rows")


def _check_same(name, found, meant, tolerance, when):
    if set(found) != set(meant):
        raise RuntimeError(f"`{name}` gives {sorted(found)} and not {sorted(meant)} {when}")
    for output, value in meant.items():
        other = found[output]
        if other.shape != value.shape:
            raise RuntimeError(
                f"`{name}` gives `{output}` of shape {other.shape} and not {value.shape} {when}"
            )
        if value.dtype.kind == "f":
            is_same = np.allclose(other, value, rtol=tolerance, atol=tolerance)
        else:
            is_same = np.array_equal(other, value)
        if not is_same:
            raise RuntimeError(f"`{name}` gives another `{output}` {when}")
