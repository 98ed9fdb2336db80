"""Rotary positions: queries and keys are rotated by their positions, in place of a table.

The product of a rotated query and a rotated key depends on their distance and not on where they
are in the sequence, so what a head learns about neighbours holds everywhere at once. There are no
weights.

Source:
    Su et al. (2021): RoFormer: Enhanced transformer with rotary position embedding, section 3.4
    (https://arxiv.org/abs/2104.09864). Neighbouring dimensions form a pair, as in the paper and in
    the released RoFormer.
"""

import numpy as np
import tensorflow as tf

from albert_keras.layers.kernels import differentiable, kernel
from albert_keras.layers.rows import shape_of

#: Ratio of the longest wavelength to the shortest one.
_BASE = 10_000.0


def rotate(vectors, positions=None):
    """Rotates each pair of neighbouring dimensions by an angle that grows with the position.

    Args:
        vectors: float [B, heads, S, D], D even. Queries or keys.
        positions: int [B, S] or None. The position of each vector; None means 0, 1, 2, ...

    Returns:
        [B, heads, S, D] in the same dtype, of the same lengths; computed in float32.
    """
    half = vectors.shape[-1] // 2
    frequencies = (_BASE ** -(np.arange(half) / half)).astype(np.float32)  # [D / 2]
    if positions is None:
        positions = tf.range(tf.shape(vectors)[2])[None]  # [1, S]
    angles = tf.cast(positions, tf.float32)[:, None, :, None] * frequencies  # [B, 1, S, D / 2]
    cosines, sines = tf.cos(angles), tf.sin(angles)

    @differentiable
    def run(vectors):
        # The gradient of a rotation is the rotation back.
        return (
            _rotated(vectors, cosines, sines),
            lambda upstream: _rotated(upstream, cosines, -sines),
        )

    return run(vectors)


@kernel
def _rotated(vectors, cosines, sines):
    pairs = tf.reshape(vectors, [*shape_of(vectors)[:-1], vectors.shape[-1] // 2, 2])
    first, second = tf.unstack(tf.cast(pairs, tf.float32), axis=-1)
    parts = [first * cosines - second * sines, second * cosines + first * sines]
    return tf.reshape(tf.cast(tf.stack(parts, axis=-1), vectors.dtype), tf.shape(vectors))
