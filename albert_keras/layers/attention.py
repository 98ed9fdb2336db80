"""The attention half of a transformer block."""

import functools
import math

import tensorflow as tf

from albert_keras.layers.block_sparse import BlockSparseAttention
from albert_keras.layers.fused import add_dropped, dense, masked_softmax
from albert_keras.layers.rotary import rotate
from albert_keras.layers.rows import Rows
from albert_keras.layers.uses import BlockWeights
from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm


class SelfAttentionBlock(NamedLayer):
    """Self-attention over real tokens, a residual connection and a normalization.

    Positions attend to all others, or to blocks of them if `config.attention` is "block-sparse".
    Queries and keys are rotated if `config.position_embedding` is "rotary".

    Args:
        config: AlbertConfig.
        scope, seed, **kwargs: As in `NamedLayer`; the scope ends in `group_G/inner_group_K`.

    Call arguments:
        hidden: float [N, H]. One row per position.
        rows: Rows. Which row belongs to which sequence, and what is padding.
        dropout_seed: DropoutSeed or None. Makes dropout reproducible, see `layers/dropout.py`.
        positions: int [B, Q] or None. Positions of the queries; None uses all. Keys and values
            always come from all positions.
        weights: BlockWeights or None. One element of `for_each_use`, if the block is called
            several times in the same graph.
        return_attention: bool. Whether to return the attention probabilities as well.

    Returns:
        [N, H] in the compute dtype; [B * Q, H] for `positions`. With `return_attention` a tuple of
        this and [B, heads, S or Q, S].

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
        self.normalization = NamedLayerNorm(
            f"{scope}/LayerNorm", size, config.layer_norm_epsilon, **shared
        )
        self.weights_dropout = self.dropout(
            config.attention_probs_dropout_prob, "attention_1/self/dropout"
        )
        self.hidden_dropout = self.dropout(config.hidden_dropout_prob, "attention_1/output/dropout")
        self.is_rotary = config.position_embedding == "rotary"
        self.sparse = BlockSparseAttention(config)
        if config.attention == "block-sparse":
            self.global_dropout = self.dropout(
                config.attention_probs_dropout_prob, "attention_1/self/global_dropout"
            )

    def for_each_use(self, uses):
        """Returns the weights of each of several calls in one graph, list of BlockWeights."""
        parts = (self.query, self.key, self.value)
        kernels = tf.concat([part.kernel for part in parts], axis=1)  # [H, 3 H]
        biases = tf.concat([part.bias for part in parts], axis=0)
        last, norm = self.projection, self.normalization
        weights = BlockWeights(kernels, biases, last.kernel, last.bias, norm.gamma, norm.beta)
        return weights.for_each_use(uses, self.compute_dtype)

    def call(
        self,
        hidden,
        rows,
        dropout_seed=None,
        training=None,
        weights=None,
        positions=None,
        return_attention=False,
    ):
        weights = weights or self.for_each_use(1)[0]
        hidden = tf.cast(hidden, self.compute_dtype)
        is_sparse = self.sparse.applies_to(rows.length)
        query_rows = rows if positions is None else Rows.of_positions(positions)
        if positions is None or is_sparse:
            residual = hidden
            # [N, 3 H] -> [B, S, 3 H]
            joined = rows.to_batch(dense(hidden, weights.inner_kernel, weights.inner_bias))
            query, key, value = self._split_heads(joined, 3)
        else:
            residual, query, joined = self._of_positions(
                hidden, rows, query_rows, positions, weights
            )
            (query,) = self._split_heads(query, 1)
            key, value = self._split_heads(joined, 2)
        if self.is_rotary:
            query, key = rotate(query, None if is_sparse else positions), rotate(key)
        scale = 1 / math.sqrt(self.head_size)
        if is_sparse:
            drop = [
                functools.partial(dropout, dropout_seed=dropout_seed, training=training)
                for dropout in (self.global_dropout, self.weights_dropout)
            ]
            context, probs = self.sparse(
                query, key, value, rows.attention_mask, scale, drop, return_attention
            )
        else:
            scores = tf.matmul(query, key, transpose_b=True)  # [B, heads, S or Q, S]
            probs = masked_softmax(scores, rows.attention_mask, scale)
            probs = self.weights_dropout(probs, dropout_seed, training=training)
            context = tf.matmul(probs, value)
        context = tf.transpose(context, (0, 2, 1, 3))  # [B, S or Q, heads, D]
        if is_sparse and positions is not None:
            # The keys differ from block to block, so queries are computed for whole blocks.
            context = tf.gather(context, positions, batch_dims=1)
            residual = tf.gather(rows.to_batch(residual), positions, batch_dims=1)
            residual = query_rows.from_batch(residual)
            if return_attention:
                probs = tf.gather(tf.transpose(probs, (0, 2, 1, 3)), positions, batch_dims=1)
                probs = tf.transpose(probs, (0, 2, 1, 3))
        size = hidden.shape[-1]
        context = tf.reshape(context, tf.concat([tf.shape(context)[:2], [size]], 0))
        found = tf.matmul(query_rows.from_batch(context), weights.kernel)  # [N or B * Q, H]
        hidden = add_dropped(
            residual,
            found,
            weights,
            self.hidden_dropout,
            query_rows,
            dropout_seed,
            training,
            self.normalization.epsilon,
        )
        return (hidden, probs) if return_attention else hidden

    def _of_positions(self, hidden, rows, query_rows, positions, weights):
        """Returns inputs and queries of the given positions, and keys and values of all."""
        size = hidden.shape[-1]
        chosen = tf.gather(rows.to_batch(hidden), positions, batch_dims=1)  # [B, Q, H]
        chosen = query_rows.from_batch(chosen)
        query_kernel, kernel = tf.split(weights.inner_kernel, [size, 2 * size], axis=1)
        query_bias, bias = tf.split(weights.inner_bias, [size, 2 * size])
        query = query_rows.to_batch(dense(chosen, query_kernel, query_bias))
        return chosen, query, rows.to_batch(dense(hidden, kernel, bias))

    def _split_heads(self, joined, parts):
        """Splits [B, S, parts * H] into `parts` tensors [B, heads, S, D]."""
        split = tf.concat([tf.shape(joined)[:2], [parts, self.num_heads, self.head_size]], 0)
        return tf.unstack(tf.transpose(tf.reshape(joined, split), (2, 0, 3, 1, 4)))
