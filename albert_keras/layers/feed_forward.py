"""The feed-forward half of a transformer block."""

import tensorflow as tf

from albert_keras.layers.fused import activated_product, add_dropped
from albert_keras.layers.kernels import is_on_cpu
from albert_keras.layers.uses import BlockWeights
from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm

#: Columns of float32 in 4096 bytes: addresses so far apart share lines of the first-level cache.
_COLLIDING = 1024
#: Columns of float32 in one cache line.
_ADDED = 16


class FeedForwardBlock(NamedLayer):
    """Two products with an activation between them, a residual connection and a normalization.

    Args:
        config: AlbertConfig.
        scope, seed, **kwargs: As in `NamedLayer`; the scope ends in `group_G/inner_group_K`.

    Call arguments:
        hidden: float [N, H]. One row per position.
        rows: Rows. Which row belongs to which sequence.
        dropout_seed: DropoutSeed or None. Makes dropout reproducible, see `layers/dropout.py`.
        weights: BlockWeights or None. As in `SelfAttentionBlock`.

    Returns:
        [N, H] in the compute dtype.

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
        self.normalization = NamedLayerNorm(
            f"{scope}/LayerNorm_1", size, config.layer_norm_epsilon, **shared
        )
        self.hidden_dropout = self.dropout(
            config.hidden_dropout_prob, "ffn_1/intermediate/output/dropout"
        )

    def for_each_use(self, uses):
        """Returns the weights of each of several calls in one graph, list of BlockWeights."""
        inner, last, norm = self.intermediate, self.projection, self.normalization
        weights = BlockWeights(
            inner.kernel, inner.bias, last.kernel, last.bias, norm.gamma, norm.beta
        )
        collides = self.compute_dtype == "float32" and inner.kernel.shape[-1] % _COLLIDING == 0
        if uses > 1 and collides and is_on_cpu():
            weights = _widened(weights)
        return weights.for_each_use(uses, self.compute_dtype)

    def call(self, hidden, rows, dropout_seed=None, training=None, weights=None):
        weights = weights or self.for_each_use(1)[0]
        hidden = tf.cast(hidden, self.compute_dtype)
        inner = tf.matmul(hidden, weights.inner_kernel)  # [N, I]
        found = activated_product(inner, weights.inner_bias, weights.kernel, self.activation)
        return add_dropped(
            hidden,
            found,
            weights,
            self.hidden_dropout,
            rows,
            dropout_seed,
            training,
            self.normalization.epsilon,
        )


def _widened(weights):
    """Adds units without weights to the inner layer, so that its rows begin at other cache lines.

    They change no result. With I a multiple of 1024 the products of a few rows take half the time,
    and so does the gradient of the kernel; the copies are made once for all uses.
    """
    return weights._replace(
        inner_kernel=tf.pad(weights.inner_kernel, [[0, 0], [0, _ADDED]]),
        inner_bias=tf.pad(weights.inner_bias, [[0, _ADDED]]),
        kernel=tf.pad(weights.kernel, [[0, _ADDED], [0, 0]]),
    )
