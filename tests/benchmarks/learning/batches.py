"""Batches of the exported records, for peers. It needs NumPy only."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

#: Features of a training record, and of a held-out record, which has additional ones.
TRAINING = ("input_ids", "input_mask", "segment_ids")
HELD_OUT = (*TRAINING, "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
IGNORED = -100  # the label of PyTorch's loss for positions without one


def load(folder: str | Path, name: str, features: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Opens exported arrays, [N, ...] each, without reading them."""
    return {
        feature: np.load(Path(folder) / f"{name}-{feature}.npy", mmap_mode="r")
        for feature in features
    }


def rows_of_batches(num_records: int, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """Yields the rows of training batches, int64 [B], endlessly; each epoch has a new order."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(0, np.int64)
    while True:
        while len(rows) < batch_size:
            rows = np.concatenate([rows, rng.permutation(num_records)])
        yield np.sort(rows[:batch_size])  # in the order of the file
        rows = rows[batch_size:]


def take(arrays: dict[str, np.ndarray], rows, dtype) -> dict[str, np.ndarray]:
    """Returns some rows of all arrays in one dtype."""
    return {name: np.asarray(array[rows], dtype) for name, array in arrays.items()}


def masking_function(vocabulary: dict, rate: float, seed: int):
    """Returns a function that masks int64 [B, S] and also returns the labels.

    It is the rule of transformers' DataCollatorForLanguageModeling: each ordinary token is selected
    with probability `rate`; of those 80 % become [MASK], 10 % any entry of the vocabulary, and 10 %
    are unchanged. The label of all others is -100.
    """
    rng = np.random.default_rng(seed + 1)
    is_special = np.zeros(vocabulary["size"], bool)
    is_special[vocabulary["special_ids"]] = True

    def mask(ids):
        selected = (rng.random(ids.shape) < rate) & ~is_special[ids]
        kind = rng.random(ids.shape)
        others = rng.integers(0, vocabulary["size"], ids.shape)
        replaced = np.where(kind < 0.8, vocabulary["mask_id"], np.where(kind < 0.9, others, ids))
        return np.where(selected, replaced, ids), np.where(selected, ids, IGNORED)

    return mask
