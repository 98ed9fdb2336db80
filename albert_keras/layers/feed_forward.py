"""The feed-forward half of a transformer block."""

import tensorflow as tf

from albert_keras.layers.activations import activate
from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm


class FeedForwardBlock(NamedLayer):
    """Widens each vector, activates, narrows it again, adds it to the input, normalises.

    Args:
        config: AlbertConfig.
        scope: str. First part of the weights' names, ending in `group_G/inner_group_K`.
        seed: int. The model's seed.
        **kwargs: `name`, `dtype`, as in Keras.

    Call arguments:
        hidden: float [B, S, H].
        draw: Draw or None. What dropout is drawn for, see `layers/dropout.py`.

    Returns:
        [B, S, H] in the compute dtype.

    Source:
        `attention_ffn_block` in google-research/albert, `modeling.py`, with its nested names.
    """

    def __init__(self, config, scope, seed=0, **kwargs):
        super().__init__(scope, seed, config.initializer_range, **kwargs)
        size, inner_size = config.hidden_size, config.intermediate_size
        shared = {"seed": seed, "stddev": self.stddev, "dtype": self.dtype_policy}
        inner_scope = f"{scope}/ffn_1/intermediate"
        self.activation = config.hidden_act
        self.intermediate = NamedDense(f"{inner_scope}/dense", size, inner_size, **shared)
        self.projection = NamedDense(f"{inner_scope}/output/dense", inner_size, size, **shared)
        self.normalization = NamedLayerNorm(f"{scope}/LayerNorm_1", size, **shared)
        self.hidden_dropout = self.dropout(
            config.hidden_dropout_prob, "ffn_1/intermediate/output/dropout"
        )

    def call(self, hidden, draw=None, training=None):
        inner = activate(self.intermediate(hidden), self.activation)  # [B, S, I]
        outputs = self.hidden_dropout(self.projection(inner), draw, training=training)  # [B, S, H]
        return self.normalization(tf.cast(hidden, tf.float32) + tf.cast(outputs, tf.float32))
