"""The attention half of a transformer block."""

import math

import tensorflow as tf

from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm


class SelfAttentionBlock(NamedLayer):
    """Lets every piece look at all real pieces, adds what it found, normalises.

    Args:
        config: AlbertConfig.
        scope: str. First part of the weights' names, ending in `group_G/inner_group_K`.
        seed: int. The model's seed.
        **kwargs: `name`, `dtype`, as in Keras.

    Call arguments:
        hidden: float [B, S, H].
        attention_mask: float32 [B, 1, 1, S]. As `additive_mask` makes it.
        draw: Draw or None. What dropout is drawn for, see `layers/dropout.py`.

    Returns:
        [B, S, H] in the compute dtype.

    Source:
        `attention_layer` and `attention_ffn_block` in google-research/albert, `modeling.py`.
    """

    def __init__(self, config, scope, seed=0, **kwargs):
        super().__init__(scope, seed, config.initializer_range, **kwargs)
        size = config.hidden_size
        shared = {"seed": seed, "stddev": self.stddev, "dtype": self.dtype_policy}
        self.num_heads = config.num_attention_heads
        self.head_size = size // self.num_heads
        # Three kernels and not one: LAMB's trust ratio is taken per variable.
        self.query = NamedDense(f"{scope}/attention_1/self/query", size, size, **shared)
        self.key = NamedDense(f"{scope}/attention_1/self/key", size, size, **shared)
        self.value = NamedDense(f"{scope}/attention_1/self/value", size, size, **shared)
        self.projection = NamedDense(f"{scope}/attention_1/output/dense", size, size, **shared)
        self.normalization = NamedLayerNorm(f"{scope}/LayerNorm", size, **shared)
        self.weights_dropout = self.dropout(
            config.attention_probs_dropout_prob, "attention_1/self/dropout"
        )
        self.hidden_dropout = self.dropout(config.hidden_dropout_prob, "attention_1/output/dropout")

    def call(self, hidden, attention_mask, draw=None, training=None):
        query = self._split_heads(self.query(hidden))  # [B, N, S, D]
        key = self._split_heads(self.key(hidden))
        value = self._split_heads(self.value(hidden))
        scores = tf.cast(tf.matmul(query, key, transpose_b=True), tf.float32)  # [B, N, S, S]
        weights = tf.nn.softmax(scores * (1 / math.sqrt(self.head_size)) + attention_mask)
        weights = self.weights_dropout(
            tf.cast(weights, self.compute_dtype), draw, training=training
        )
        context = tf.transpose(tf.matmul(weights, value), (0, 2, 1, 3))  # [B, S, N, D]
        context = self.projection(tf.reshape(context, tf.shape(hidden)))  # [B, S, H]
        context = self.hidden_dropout(context, draw, training=training)
        return self.normalization(tf.cast(hidden, tf.float32) + tf.cast(context, tf.float32))

    def _split_heads(self, hidden):
        """Makes [B, N, S, D] of [B, S, H]."""
        split = tf.concat([tf.shape(hidden)[:2], [self.num_heads, self.head_size]], 0)
        return tf.transpose(tf.reshape(hidden, split), (0, 2, 1, 3))


def additive_mask(input_mask):
    """Makes what is added to the scores: 0 for a real piece, -10000 for padding.

    Args:
        input_mask: int [B, S]. 1 for a real piece, 0 for padding, in any pattern.

    Returns:
        float32 [B, 1, 1, S]. -10000 as in the reference: finite, so a row of padding alone gives
        even weights and not NaN.
    """
    return (1.0 - tf.cast(input_mask, tf.float32))[:, None, None, :] * -10_000.0
