"""Element-wise functions as kernels: one pass over memory instead of one for each operation.

TensorFlow runs each operation on a CPU as a pass over memory, and beside fast products of matrices
those passes are half of a training step. XLA makes one loop of many. It multiplies matrices slowly
on a CPU, so that only what lies between the products is given to it.
"""

import atexit
import contextlib
import contextvars
import functools

import tensorflow as tf

# Not seen by the threads of other replicas, where XLA cannot compile for a CPU.
_compiles = contextvars.ContextVar("compiles", default=False)
#: Function -> what compiles it. Let go while Python still stands: TensorFlow complains otherwise.
_compiled = {}
atexit.register(_compiled.clear)
_is_for_inference = contextvars.ContextVar("is_for_inference", default=False)


def kernel(function):
    """Makes a function of tensors one kernel wherever `compiled_kernels` says so.

    Args:
        function: callable. Takes tensors, and returns tensors; gradients are not recorded through
            it.

    Returns:
        callable, the same function.
    """

    @functools.wraps(function)
    def run(*tensors):
        if not _compiles.get():
            return function(*tensors)
        if function not in _compiled:
            _compiled[function] = tf.function(function, jit_compile=True, autograph=False)
        return _compiled[function](*tensors)

    return run


@contextlib.contextmanager
def compiled_kernels(wanted=True):
    """Lets XLA compile the kernels that are traced within.

    Meant for a training step that runs on one CPU: elsewhere XLA either compiles all of the step
    (TPU) or is not needed. An export must not hold compiled kernels.

    Args:
        wanted: bool.
    """
    token = _compiles.set(wanted)
    try:
        yield
    finally:
        _compiles.reset(token)


@contextlib.contextmanager
def inference(wanted=True):
    """Has plain operations of TensorFlow traced within, without gradients of our own.

    A SavedModel would hold those with each signature, or warn when it is loaded. On a CPU the
    operations are put so that TensorFlow joins them with the product before: activations, and the
    mask of attention.

    Args:
        wanted: bool. False leaves everything as it is.
    """
    token = _is_for_inference.set(wanted or _is_for_inference.get())
    try:
        yield
    finally:
        _is_for_inference.reset(token)


def is_for_inference():
    """Tells whether plain operations are wanted (bool)."""
    return _is_for_inference.get()


def differentiable(function):
    """As `tf.custom_gradient`; within `inference` the result alone counts.

    Args:
        function: callable. Takes tensors, returns (results, gradient function).
    """
    written = tf.custom_gradient(function)

    @functools.wraps(function)
    def run(*tensors):
        return function(*tensors)[0] if _is_for_inference.get() else written(*tensors)

    return run


def is_on_cpu():
    """Tells whether what is being traced runs on one CPU (bool)."""
    return not tf.distribute.has_strategy() and not tf.config.list_logical_devices("GPU")


def column_sums(rows):
    """Sums over the rows: float [N, M] -> float32 [M].

    As a product with ones where kernels are compiled, since XLA:CPU sums columns one by one and
    TensorFlow on one core. The product adds up in float32 and rounds the sums to the dtype of the
    rows.
    """
    if _compiles.get():
        ones = tf.ones([1, tf.shape(rows)[0]], rows.dtype)
        return tf.cast(tf.matmul(ones, rows)[0], tf.float32)
    return tf.reduce_sum(tf.cast(rows, tf.float32), axis=0)
