"""Weights with the full names of the reference, and the two basic layers built from them.

Every weight exists as soon as its layer is constructed and has the same name in any context:
optimizers select by name what decays, checkpoints of the reference are matched by name, and the
initial value depends only on the model's seed and the name.
"""

import contextlib
import contextvars
import hashlib
import random
from collections.abc import Collection, Iterator
from typing import Any

import keras
import tensorflow as tf

from albert_keras.keras_versions import groups_above, name_of, new_weight, take_any_inputs
from albert_keras.layers.dropout import Dropout
from albert_keras.layers.fused import dense, layer_norm

#: Full names of the weights that `loaded_afterwards` was given.
_LOADED: contextvars.ContextVar[Collection[str]] = contextvars.ContextVar("loaded", default=())


@contextlib.contextmanager
def loaded_afterwards(names: Collection[str]) -> Iterator[None]:
    """Context in which weights with these full names begin as zeros: they are loaded afterwards.

    To sample values that are replaced takes a sixth of the time of `from_preset`.
    """
    token = _LOADED.set(names)
    try:
        yield
    finally:
        _LOADED.reset(token)


def name_seed(seed, name):
    """Returns the seed of one weight or dropout (int), from the model's seed and the full name."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1  # below 2**31


def key_of(name: str) -> str:
    """Returns the name of a weight as a key of an HDF5 file, where "/" would make groups."""
    return name.replace("/", ".")


def seed_of_model(seed: int | None) -> int:
    """Returns the seed of a new model: as given, or drawn as `keras.utils.set_random_seed` says."""
    return random.randrange(2**31) if seed is None else seed


class StoredOnce:
    """A layer or a model whose weights are stored and loaded by the model around it, if any.

    Keras stores and loads a model before its layers. What a layer has to do is read from the file
    alone, so that nothing is left behind by a file that was not stored or loaded to its end.

    Attributes:
        is_part: bool. Whether it was made by a model around, which stores its weights. (The other
            Keras has other paths: where it stored nothing, Keras 2.15 gives an empty dict.)
    """

    is_part = False

    def is_above(self, store: Any) -> bool:
        """Returns whether the file of a store has the weights already, of the model around."""
        if store == {}:
            return self.is_part
        keys = {key_of(name_of(weight)) for weight in self.weights}  # type: ignore[attr-defined]
        return bool(keys) and any(keys <= group.keys() for group in groups_above(store))


class NamedLayer(StoredOnce, keras.layers.Layer):
    """Base class of the layers: weights with full names that exist after construction.

    Args:
        scope: str. Prefix of the names of the weights, for example "bert/pooler/dense"; may be "".
        seed: int. The model's seed.
        stddev: float. Standard deviation of the initial kernels and tables.
        **kwargs: `name`, `dtype`, `trainable`, as in Keras.
    """

    is_part = True

    def __init__(self, scope, seed=0, stddev=0.02, **kwargs):
        kwargs.setdefault("name", scope.rsplit("/", 1)[-1])
        # Each `call` casts explicitly, because it decides what runs in float32.
        super().__init__(autocast=False, **kwargs)
        self.scope = scope
        self.seed = seed
        self.stddev = stddev
        take_any_inputs(self)
        self.built = True

    def named_weight(self, name, shape, initializer="normal"):
        """Returns a new weight called `scope`/`name`.

        Args:
            name: str. Rest of the name.
            shape: tuple of int.
            initializer: str. "normal" (truncated at two standard deviations), "zeros" or "ones".
        """
        full_name = f"{self.scope}/{name}"
        if initializer == "normal" and (self.stddev == 0 or full_name in _LOADED.get()):
            initializer = "zeros"  # without sampling, which takes seconds for the largest sizes
        if initializer == "normal":
            initializer = keras.initializers.TruncatedNormal(
                stddev=self.stddev, seed=name_seed(self.seed, full_name)
            )
        return new_weight(self, full_name.strip("/"), shape, initializer)

    def save_own_variables(self, store: Any) -> None:
        if not self.is_above(store):
            super().save_own_variables(store)

    def load_own_variables(self, store: Any) -> None:
        if not self.is_above(store):
            super().load_own_variables(store)

    def dropout(self, rate, name):
        """Returns a dropout layer with a seed of its own."""
        return Dropout(
            rate,
            seed=name_seed(self.seed, f"{self.scope}/{name}"),
            dtype=self.dtype_policy,
            name=name.replace("/", "_"),
        )


class NamedDense(NamedLayer):
    """Dense layer: multiplies by `scope`/kernel and adds `scope`/bias.

    float [..., `input_size`] -> [..., `output_size`] in the compute dtype; further arguments are
    those of `NamedLayer`.
    """

    def __init__(self, scope, input_size, output_size, **kwargs):
        super().__init__(scope, **kwargs)
        self.output_size = output_size
        self.kernel = self.named_weight("kernel", (input_size, output_size))
        self.bias = self.named_weight("bias", (output_size,), "zeros")

    def call(self, inputs):
        shape = tf.concat([tf.shape(inputs)[:-1], [self.output_size]], 0)
        # A product of two matrices: for [B, S, M] TensorFlow would compute a kernel gradient per
        # sequence and sum them.
        rows = tf.reshape(tf.cast(inputs, self.compute_dtype), (-1, self.kernel.shape[0]))
        kernel = tf.cast(self.kernel, self.compute_dtype)
        return tf.reshape(dense(rows, kernel, tf.convert_to_tensor(self.bias)), shape)


class NamedLayerNorm(NamedLayer):
    """Layer normalization over the last axis, in float32, with `scope`/gamma and `scope`/beta.

    float [..., `size`] -> the same shape in the compute dtype; `epsilon` is added to the variance,
    and further arguments are those of `NamedLayer`.
    """

    def __init__(self, scope, size, epsilon=1e-12, **kwargs):
        super().__init__(scope, **kwargs)
        self.epsilon = epsilon
        self.gamma = self.named_weight("gamma", (size,), "ones")
        self.beta = self.named_weight("beta", (size,), "zeros")

    def call(self, inputs):
        rows = tf.reshape(inputs, (-1, self.gamma.shape[0]))
        gamma, beta = tf.convert_to_tensor(self.gamma), tf.convert_to_tensor(self.beta)
        normal = layer_norm(rows, gamma, beta, self.compute_dtype, self.epsilon)
        return tf.reshape(normal, tf.shape(inputs))
