"""Element-wise functions as kernels: one pass over memory instead of one per operation.

TensorFlow runs each operation as a pass over memory, and next to fast matrix products these passes
take half of a training step on a CPU, and most of it on a GPU. XLA fuses them into one loop. It
multiplies matrices slowly on a CPU, so there only the operations between the products are compiled.
"""

import atexit
import contextlib
import contextvars
import functools

import tensorflow as tf

from data_pipeline.settings import did_you_mean
from data_pipeline.tensorflow_line import prepare_compiler, trace_as_written

#: What XLA compiles of a training step: all of it, the kernels between the products, or nothing.
COMPILED_PARTS = ("step", "kernels", "none")

trace_as_written()  # before the first function of the project is traced

_compiles = contextvars.ContextVar("compiles", default=False)
#: Function -> its compiled form. Released before shutdown, where TensorFlow would complain.
_compiled = {}
atexit.register(_compiled.clear)
_is_for_inference = contextvars.ContextVar("is_for_inference", default=False)


def kernel(function):
    """Compiles a function of tensors into one kernel within `compiled_kernels`.

    It is not differentiable when compiled.
    """

    @functools.wraps(function)
    def run(*tensors):
        if not _compiles.get():
            return function(*tensors)
        if function not in _compiled:
            _compiled[function] = compiled(function, autograph=False)
        # Variables of Keras 3 are no arguments of a function of TensorFlow.
        return _compiled[function](*map(tf.convert_to_tensor, tensors))

    return run


def compiled(function, autograph=True):
    """Returns a function of tensors as a program that XLA compiles, products included."""
    prepare_compiler()
    return tf.function(function, jit_compile=True, autograph=autograph)


def compiled_part_of(jit_compile):
    """Returns what an argument `jit_compile` names: one of COMPILED_PARTS, or "auto" for None.

    Raises:
        ValueError: For any value but these, True for "step" and False for "none".
    """
    if isinstance(jit_compile, bool):
        return "step" if jit_compile else "none"
    part, choices = "auto" if jit_compile is None else jit_compile, (*COMPILED_PARTS, "auto")
    if part not in choices:
        raise ValueError(
            "`jit_compile` must be True, False, None or the part of a step that XLA compiles. "
            f"Received: {jit_compile!r}{did_you_mean(str(jit_compile), choices)}"
        )
    return part


@contextlib.contextmanager
def compiled_kernels(wanted=True):
    """Context in which traced kernels are compiled by XLA, if that is wanted.

    Meant for a step on one CPU or on GPUs: a TPU compiles the whole step. An export must not
    contain compiled kernels.
    """
    token = _compiles.set(wanted)
    try:
        yield
    finally:
        _compiles.reset(token)


@contextlib.contextmanager
def inference(wanted=True):
    """Context in which plain TensorFlow operations are traced, without custom gradients.

    A SavedModel would otherwise store the gradients with each signature, or warn when it is loaded.
    On a CPU the operations are arranged so that TensorFlow fuses activations and the attention
    mask with the preceding product. If it is not wanted, nothing changes.
    """
    token = _is_for_inference.set(wanted or _is_for_inference.get())
    try:
        yield
    finally:
        _is_for_inference.reset(token)


def is_for_inference():
    """Returns whether plain operations are requested."""
    return _is_for_inference.get()


def differentiable(function):
    """Wraps a function like `tf.custom_gradient`; within `inference` the gradient is dropped."""
    written = tf.custom_gradient(function)

    @functools.wraps(function)
    def run(*tensors):
        return function(*tensors)[0] if _is_for_inference.get() else written(*tensors)

    return run


def is_on_cpu():
    """Returns whether the traced function runs on a single CPU."""
    return not tf.distribute.has_strategy() and not has_gpu()


def has_gpu():
    """Returns whether there is a GPU."""
    return bool(tf.config.list_logical_devices("GPU"))


def column_sums(rows):
    """Sums over the rows: float [N, M] -> float32 [M].

    Where kernels are compiled this is a product with ones, because XLA:CPU sums columns one by one
    and TensorFlow does so on one core. The product accumulates in float32 and rounds the sums to
    the dtype of the rows.
    """
    if _compiles.get():
        ones = tf.ones([1, tf.shape(rows)[0]], rows.dtype)
        return tf.cast(tf.matmul(ones, rows)[0], tf.float32)
    return tf.reduce_sum(tf.cast(rows, tf.float32), axis=0)
