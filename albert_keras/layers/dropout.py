"""Dropout whose masks depend on seed, step and row, however a batch is split over devices."""

from typing import NamedTuple

import keras
import tensorflow as tf

from albert_keras.keras_versions import take_any_inputs
from albert_keras.layers.kernels import differentiable, kernel

#: Philox on CPU and GPU, where sampling from counter i yields the numbers from position i on; on
#: TPU whichever algorithm is fast there.
_ALGORITHM, _PHILOX = 3, 1
#: TensorFlow, `stateless_random_ops_v2.cc`: the key with which Philox scrambles a seed.
_SCRAMBLING_KEY = 0x02461E29_3EC8F720
#: Numbers generated per value of the Philox counter.
_NUMBERS_PER_COUNT = 4


class DropoutSeed(NamedTuple):
    """The state that dropout masks depend on, besides the seed of the layer.

    Attributes:
        step: int64 scalar Tensor. Number of optimizer steps completed.
        row: int64 scalar Tensor. Index of the first row of this (part of a) batch in the global
            batch of the step, over all replicas and accumulated parts.
        depth: int64 scalar Tensor or None, which is 0. Which use of a shared layer.
    """

    step: tf.Tensor
    row: tf.Tensor
    depth: tf.Tensor | None = None

    def of_sequences(self, count):
        """Returns the seed for a batch in which every row has become `count` sequences, int."""
        return self._replace(row=self.row * tf.cast(count, tf.int64))

    def at_depth(self, depth):
        """Returns the seed for another use of a shared layer, int."""
        return self._replace(depth=tf.constant(depth, tf.int64))


class DropoutSteps(tf.__internal__.tracking.AutoTrackable):
    """Counts the calls of a model in training, each of which has masks of its own.

    As an attribute of a model it is a part of its `tf.train.Checkpoint`, but not of its weights.
    """

    def __init__(self):
        self._count = tf.Variable(
            0,
            trainable=False,
            dtype=tf.int64,
            name="dropout_steps",
            # Each replica counts for itself, and all of them count the same.
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def next_seed(self, rows):
        """Returns the DropoutSeed of the next call.

        Args:
            rows: int or int scalar Tensor. Rows of this replica's batch.
        """
        self._count.assign_add(1)
        context = tf.distribute.get_replica_context()
        replica = 0 if context is None else context.replica_id_in_sync_group
        first_row = tf.cast(replica, tf.int64) * tf.cast(rows, tf.int64)
        return DropoutSeed(tf.convert_to_tensor(self._count), first_row)


class Dropout(keras.layers.Layer):
    """Dropout layer with reproducible masks.

    Args:
        rate: float. Share of the inputs that is set to 0.
        seed: int. Different for each layer.
        **kwargs: `name`, `dtype`, as in Keras.

    Call arguments:
        inputs: float [B, ...].
        dropout_seed: DropoutSeed or None. The masks are a pure function of the layer's seed and of
            this, which models give. None takes the next numbers of TensorFlow's generator.
    """

    def __init__(self, rate, seed, **kwargs):
        super().__init__(**kwargs)
        self.rate, self.seed = rate, seed
        take_any_inputs(self)
        self.built = True

    def call(self, inputs, dropout_seed=None, training=None):
        if not training or self.rate == 0:
            return inputs
        if dropout_seed is None:
            return tf.nn.dropout(inputs, self.rate, seed=self.seed)
        return _dropped(inputs, self._bits(tf.shape(inputs), dropout_seed), self.rate)

    def _bits(self, shape, dropout_seed):
        """Returns random int32 numbers; the first axis of the shape counts rows."""
        of_layer = tf.constant(self.seed << 16, tf.int64)
        if dropout_seed.depth is not None:
            of_layer += dropout_seed.depth
        seed = tf.stack([of_layer, tf.convert_to_tensor(dropout_seed.step)])
        key, counter = _key_and_counter(seed)
        # Each row uses whole counter values, so that it can be sampled without the rows before it.
        size = tf.reduce_prod(shape[1:])
        counts = (size + _NUMBERS_PER_COUNT - 1) // _NUMBERS_PER_COUNT
        begin = dropout_seed.row * tf.cast(counts, tf.int64)
        counter += tf.cast(tf.stack([begin, tf.zeros_like(begin)]), tf.uint64)
        bits = tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=tf.stack([shape[0], counts * _NUMBERS_PER_COUNT]),
            key=key,
            counter=counter,
            alg=_ALGORITHM,
            dtype=tf.int32,
        )
        return tf.reshape(bits[:, :size], shape)


def _key_and_counter(seed):
    """Returns what `StatelessRandomGetKeyCounter` returns for a seed, int64 [2].

    XLA's version of that operation reads only the lower halves of the seed.
    """
    key, high = tf.unstack(
        tf.raw_ops.StatelessRandomUniformFullIntV2(
            shape=[2],
            key=tf.constant([_SCRAMBLING_KEY], tf.uint64),
            counter=tf.bitcast(seed, tf.uint64),
            alg=_PHILOX,
            dtype=tf.uint64,
        )
    )
    return key[None], tf.stack([tf.zeros_like(high), high])


def _dropped(inputs, bits, rate):
    """Sets a random fraction of the inputs to 0 and scales the others up."""

    @differentiable
    def run(inputs):
        kept = _is_kept(bits, tf.constant(rate, tf.float32))
        scale = tf.constant(1 / (1 - rate), inputs.dtype)
        return _scaled(kept, inputs, scale), lambda upstream: _scaled(kept, upstream, scale)

    return run(inputs)


@kernel
def _is_kept(bits, rate):
    # As TensorFlow makes a float32 of random bits; XLA makes another one of the same bits.
    numbers = tf.cast(tf.bitwise.bitwise_and(bits, 2**23 - 1), tf.float32) * 2.0**-23
    return numbers >= rate


@kernel
def _scaled(kept, inputs, scale):
    return tf.where(kept, inputs * scale, tf.zeros([], inputs.dtype))
