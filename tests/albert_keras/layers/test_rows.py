"""A batch as rows, with all of its positions or without padding."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.rows import Rows, shortened

MASKS = {
    "full": [[1] * 12] * 4,
    "right-padded": [[1] * 12, [1] * 5 + [0] * 7, [1] + [0] * 11, [1] * 3 + [0] * 9],
    "left-padded": [[0] * 11 + [1], [0] * 4 + [1] * 8, [0] * 9 + [1] * 3, [1] * 12],
    "holed": [[1, 0, 0] * 4, [0, 1] * 6, [1] * 12, [0, 0, 1, 1] * 3],
    "padding": [[0] * 12] * 4,
}
#: 4 x 12 positions.
STEP = 48 // 16


def kept_places(mask, step):
    """Returns which of the places are rows: the real ones and the first few of the others."""
    real = np.flatnonzero(mask)
    padding = np.flatnonzero(1 - mask.reshape(-1))
    number = -(-len(real) // step) * step
    return np.concatenate([real, padding])[:number]


def numbered(*shape):
    """Returns a batch without a zero in it."""
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", MASKS)
def test_rows_are_the_real_places_filled_up_to_a_sixteenth_and_come_back(name, dtype):
    mask, batch = np.array(MASKS[name]), numbered(4, 12, 2)
    mapping = Rows(tf.constant(mask), skips_padding=True)
    rows = mapping.from_batch(tf.cast(batch, dtype))
    assert rows.shape[0] % STEP == 0 and rows.dtype == dtype
    assert mask.sum() <= rows.shape[0] < mask.sum() + STEP
    kept, flat = kept_places(mask, STEP), batch.reshape(-1, 2)
    np.testing.assert_array_equal(tf.cast(rows, tf.float32), flat[kept])
    expected = np.zeros_like(flat)  # what was left out comes back as zeros
    expected[kept] = flat[kept]
    back = tf.cast(mapping.to_batch(rows), tf.float32)
    np.testing.assert_array_equal(back, expected.reshape(batch.shape))


@pytest.mark.parametrize(
    "ends, length",
    [((64, 3), 64), ((12, 65), 128), ((129, 1), 130), ((0, 0), 1)],
)
def test_batches_are_cut_behind_the_longest_sequence_at_a_multiple_of_64(ends, length):
    mask = np.arange(130) < np.array(ends)[:, None]
    # A hole neither ends a sequence nor lengthens it.
    mask[:, 1:2] = False
    batches = [numbered(2, 130), numbered(2, 130) + 5, mask]
    cut = shortened([tf.constant(batch) for batch in batches], tf.constant(mask))
    for found, whole in zip(cut, batches, strict=True):
        np.testing.assert_array_equal(found, whole[:, :length])
