"""Dropout whose masks depend on seed, step and row, however a batch is split over devices."""

from typing import NamedTuple

import tensorflow as tf
from tensorflow import keras

#: Philox on CPU and GPU, where sampling from counter i yields the numbers from position i on; on
#: TPU whichever algorithm is fast there.
_ALGORITHM = 3
#: Numbers generated per value of the Philox counter.
_NUMBERS_PER_COUNT = 4


class DropoutSeed(NamedTuple):
    """The state that dropout masks depend on, besides the seed of the layer.

    Attributes:
        step: int64 scalar Tensor. Number of optimizer steps completed.
        row: int64 scalar Tensor. Index of the first row of this (part of a) batch in the global
            batch of the step, over all replicas and accumulated parts.
        depth: int. Which use of a shared layer.
    """

    step: tf.Tensor
    row: tf.Tensor
    depth: int = 0

    def of_sequences(self, count):
        """Returns the seed for a batch in which every row has become `count` sequences, int."""
        return self._replace(row=self.row * tf.cast(count, tf.int64))


class Dropout(keras.layers.Dropout):
    """Dropout layer with reproducible masks.

    Args:
        rate: float. Fraction of values set to 0.
        seed: int. Different for each layer.
        **kwargs: `name`, `dtype`, as in Keras.

    Call arguments:
        inputs: float [B, ...].
        dropout_seed: DropoutSeed or None. Makes the masks a pure function of the layer's seed and
            of this. None takes the next numbers of a generator, as Keras does.

    Returns:
        [B, ...] in the dtype of the inputs.
    """

    def call(self, inputs, dropout_seed=None, training=None):
        if dropout_seed is None or not training or self.rate == 0:
            return super().call(inputs, training=training)
        kept = self._numbers(tf.shape(inputs), dropout_seed) >= self.rate
        return tf.where(kept, inputs * tf.cast(1 / (1 - self.rate), inputs.dtype), 0)

    def _numbers(self, shape, dropout_seed):
        """Returns float32 numbers in [0, 1); the first axis of the shape counts rows."""
        seed = tf.stack(
            [tf.constant(self.seed << 16 | dropout_seed.depth, tf.int64), dropout_seed.step]
        )
        key, counter = tf.raw_ops.StatelessRandomGetKeyCounter(seed=seed)
        # Each row uses whole counter values, so that it can be sampled without the rows before it.
        size = tf.reduce_prod(shape[1:])
        counts = (size + _NUMBERS_PER_COUNT - 1) // _NUMBERS_PER_COUNT
        begin = dropout_seed.row * tf.cast(counts, tf.int64)
        counter += tf.cast(tf.stack([begin, tf.zeros_like(begin)]), tf.uint64)
        numbers = tf.raw_ops.StatelessRandomUniformV2(
            shape=tf.stack([shape[0], counts * _NUMBERS_PER_COUNT]),
            key=key,
            counter=counter,
            alg=_ALGORITHM,
        )
        return tf.reshape(numbers[:, :size], shape)
