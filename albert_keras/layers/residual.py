"""How a block ends: what it found is added to what it was given, and the sum normalised."""

import tensorflow as tf

from albert_keras.layers.fused import add_layer_norm


def add_dropped(hidden, found, weights, dropout, rows, dropout_seed, training):
    """Adds a bias, drops out, adds the input, normalises.

    Args:
        hidden: float [N, H]. What the block was given.
        found: [N, H], same dtype. What its last product gave.
        weights: tuple with `bias`, `gamma` and `beta`, float32 [H].
        dropout: Dropout.
        rows: Rows.
        dropout_seed: DropoutSeed or None.
        training: bool or None.

    Returns:
        [N, H], same dtype.
    """
    bias = weights.bias
    if training and dropout.rate:
        found = tf.nn.bias_add(found, tf.cast(bias, found.dtype))
        # Numbers are drawn for each sequence of the batch, whatever rows there are.
        found = rows.from_batch(dropout(rows.to_batch(found), dropout_seed, training=training))
        bias = tf.zeros_like(bias)
    return add_layer_norm(hidden, found, bias, weights.gamma, weights.beta)
