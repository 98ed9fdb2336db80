"""The made-up batch that every contestant trains on, again and again."""

import numpy as np


def made_up_batch(shape, seed=0):
    """Draws pieces and what is to be predicted of them.

    Args:
        shape: Shape. B, S, P, V.
        seed: int.

    Returns:
        dict of str to array: `input_ids`, `segment_ids`, `input_mask` (all 1), int32 [B, S];
        `masked_lm_positions`, of each row different from each other and in order, and
        `masked_lm_ids`, int32 [B, P].
    """
    rng = np.random.default_rng(seed)
    rows, length, predictions = shape.batch_size, shape.max_seq_length, shape.predictions
    everywhere = rng.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)
    values = {
        "input_ids": rng.integers(0, shape.config.vocab_size, (rows, length)),
        "segment_ids": np.arange(length)[None] >= rng.integers(1, length + 1, (rows, 1)),
        "input_mask": np.ones((rows, length)),
        "masked_lm_positions": np.sort(everywhere[:, :predictions], axis=1),
        "masked_lm_ids": rng.integers(0, shape.config.vocab_size, (rows, predictions)),
    }
    return {name: value.astype(np.int32) for name, value in values.items()}
