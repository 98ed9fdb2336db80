"""Attention between blocks of positions, with memory and work linear in the length.

The sequence is cut into blocks of equal size. Each block of queries attends to the same number of
blocks of keys: the first blocks of the sequence, which contain [CLS], a window around its own, and
some others at random. The first blocks attend to everything. There are no weights.

Source:
    Zaheer et al.: Big Bird: Transformers for longer sequences, section 2 and appendix D
    (https://arxiv.org/abs/2007.14062); window and global positions without random blocks:
    Longformer (https://arxiv.org/abs/2004.05150).
"""

import numpy as np
import tensorflow as tf

from albert_keras.layers.embeddings import look_up
from albert_keras.layers.fused import masked_softmax
from albert_keras.layers.kernels import is_for_inference
from albert_keras.layers.recomputed import recomputed
from albert_keras.layers.rows import shape_of

#: Order of preference; random blocks are between 0 and 1.
_GLOBAL, _WINDOW = -2.0, -1.0
_PADDING = -10_000.0  # as in `additive_mask`


class BlockSparseAttention:
    """Attention of blocks of queries to some blocks of keys.

    Which blocks these are depends on the configuration and on the number of blocks alone; the
    random ones on `attention_seed` and the block of queries.

    Args:
        config: AlbertConfig.
    """

    def __init__(self, config):
        self._config = config
        self._size = config.attention_block_size

    def applies_to(self, length):
        """Returns whether anything is left out for a length (int, or None if it is not static)."""
        if self._config.attention == "dense":
            return False
        return length is None or self._config.is_sparse_at(length)

    def key_blocks(self, number):
        """Returns the blocks of keys of each block of queries.

        Args:
            number: int or int32 scalar Tensor. Blocks of the sequence, n.

        Returns:
            int32 [n, k], each row without repetition; k is `config.key_blocks`, at most n.
        """
        if isinstance(number, int):
            order = np.argsort(self._ranks(number), axis=1, kind="stable")
            return tf.constant(order[:, : self._config.key_blocks], tf.int32)
        # Shapes that depend on the batch: the same table for the longest sequence, cut.
        longest = -(-self._config.max_position_embeddings // self._size)
        ranks = tf.constant(self._ranks(longest))[:number, :number]
        return tf.math.top_k(-ranks, tf.minimum(self._config.key_blocks, number)).indices

    def __call__(self, query, key, value, mask, scale, drop, return_attention=False):
        """Computes the attention of all positions.

        Args:
            query, key, value: float [B, heads, S, D].
            mask: float32 [B, 1, 1, S]. Added to the scaled scores.
            scale: float. Factor for the scores.
            drop: pair of functions for the dropout of attention weights: of the first blocks, and
                of all others.
            return_attention: bool. Whether to return the weights, with zeros for pairs of
                positions that are left out; their size is quadratic.

        Returns:
            float [B, heads, S, D], and [B, heads, S, S] or None.
        """
        size, length = self._size, query.shape[2] or tf.shape(query)[2]
        number = -(-length // size)  # n
        missing = number * size - length
        if not isinstance(missing, int) or missing:
            axes = [[0, 0], [0, 0], [0, missing], [0, 0]]
            query, key, value = (tf.pad(part, axes) for part in (query, key, value))
            mask = tf.pad(mask, [[0, 0], [0, 0], [0, 0], [0, missing]], constant_values=_PADDING)
        few = self._config.attention_global_blocks
        parts = []

        # The first blocks attend to all positions.
        if few:
            scores = tf.matmul(query[:, :, : few * size], key, transpose_b=True)
            first = drop[0](masked_softmax(scores, mask, scale))  # [B, heads, few * size, n * size]
            parts.append(tf.matmul(first, value))

        # The others, m = n - few, attend to their blocks.
        blocks = self.key_blocks(number)[few:]  # [m, k]
        query = self._split(query[:, :, few * size :])  # [B, heads, m, size, D]
        masks = tf.gather(tf.reshape(mask, [-1, number, size]), blocks, axis=1)  # [B, m, k, size]
        batch, others, count, _ = shape_of(masks)
        masks = tf.reshape(masks, [batch, 1, others, 1, count * size])
        scores = _again(lambda query, key: tf.matmul(query, key, transpose_b=True))(
            query, self._split(key), blocks
        )
        probs = drop[1](masked_softmax(scores, masks, scale))  # [B, heads, m, size, k * size]
        found = _again(tf.matmul)(probs, self._split(value), blocks)  # [B, heads, m, size, D]
        parts.append(tf.reshape(found, [*shape_of(value)[:2], others * size, found.shape[-1]]))

        context = tf.concat(parts, axis=2)[:, :, :length]
        if not return_attention:
            return context, None
        weights = _spread(probs, blocks, number)  # [B, heads, m * size, n * size]
        weights = tf.concat([first, weights], axis=2) if few else weights
        return context, weights[:, :, :length, :length]

    def _ranks(self, number):
        """Returns the order of preference of keys for each block, float32 [number, number]."""
        config, index = self._config, np.arange(number)
        ranks = np.empty((number, number), np.float32)
        for block in range(number):
            # Raw numbers, which are the same in all versions of NumPy; the first ones of a block
            # do not depend on the length of the sequence.
            numbers = np.random.Philox(key=[config.attention_seed, block]).random_raw(number)
            ranks[block] = numbers / 2.0**64
        distance = np.abs(index[:, None] - index)
        ranks[distance <= config.attention_window_blocks // 2] = _WINDOW
        ranks[:, : config.attention_global_blocks] = _GLOBAL
        return ranks

    def _split(self, positions):
        """Cuts [B, heads, m * size, D] into blocks: [B, heads, m, size, D]."""
        shape = shape_of(positions)
        return tf.reshape(positions, [*shape[:2], shape[2] // self._size, self._size, shape[3]])


def _again(product):
    """Returns a product with gathered blocks, which are gathered again for the gradient.

    They are k times as large as what they are gathered from. A product takes rows, [B, heads, m,
    size, X], and gathered blocks; the one that is returned rows, all blocks and which to gather.
    """

    def run(rows, source, blocks):
        def function(rows, source):
            return product(rows, _gathered(source, blocks))

        return (function if is_for_inference() else recomputed(function))(rows, source)

    return run


def _gathered(source, blocks):
    """Gathers [B, heads, n, size, D] by int32 [m, k] to [B, heads, m, k * size, D]."""
    batch, heads, number, size, width = shape_of(source)
    # Rows of one table, so that the gradient is one sum of rows.
    table = tf.reshape(source, [batch * heads * number, size * width])
    starts = tf.range(batch * heads) * number
    rows = look_up(table, starts[:, None, None] + blocks)  # [B * heads, m, k, size * D]
    few, count = shape_of(blocks)
    return tf.reshape(rows, [batch, heads, few, count * size, width])


def _spread(probs, blocks, number):
    """Returns the weights of all pairs of positions, [B, heads, m * size, n * size]."""
    batch, heads, few, size, keys = shape_of(probs)
    probs = tf.reshape(probs, [batch, heads, few, size, keys // size, size])
    where = tf.one_hot(blocks, number, dtype=probs.dtype)  # [m, k, n]
    weights = tf.einsum("bhmskt,mkn->bhmsnt", probs, where)
    return tf.reshape(weights, [batch, heads, few * size, number * size])
