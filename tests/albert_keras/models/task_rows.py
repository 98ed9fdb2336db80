"""Random rows for models of all kinds of tasks."""

import numpy as np

#: Of each row of choice.
OPTIONS = 3


def features(kind, batch=4, length=9, padding=0, seed=0):
    """Makes rows of uneven lengths with all their targets.

    Args:
        kind: str. One of `KINDS`.
        batch: int. Number of rows, B.
        length: int. S.
        padding: int. How many places of padding to add to S.
        seed: int.

    Returns:
        dict of np.ndarray [B, ...].
    """
    rng = np.random.default_rng(seed)
    sequences = {"choice": (OPTIONS,), "similarity": (2,)}.get(kind, ())
    shape = (batch, *sequences, length)
    lengths = rng.integers(4, length + 1, shape[:-1])
    mask = (np.arange(length) < lengths[..., None]).astype(np.int32)
    p_mask = 1 - mask
    p_mask[..., 1] = 1
    tag_ids = np.where(mask, rng.integers(-1, 4, shape), -1)
    wide = {
        "input_ids": (rng.integers(5, 50, shape) * mask, 0),
        "input_mask": (mask, 0),
        "segment_ids": (rng.integers(0, 2, shape) * mask, 0),
        "p_mask": (p_mask, 1),
        "tag_ids": (tag_ids, -1),
    }
    widths = [(0, 0)] * (len(shape) - 1) + [(0, padding)]
    rows = {
        name: np.pad(values, widths, constant_values=value).astype(np.int32)
        for name, (values, value) in wide.items()
    }
    regression = rng.normal(size=batch).astype(np.float32)
    labels = rng.integers(0, OPTIONS, batch).astype(np.int32)
    if kind in ("regression", "similarity"):
        labels = regression
    elif kind == "multi_label":
        labels = rng.integers(0, 2, (batch, 4)).astype(np.int32)
    elif kind == "multi_regression":
        labels = rng.normal(size=(batch, 4)).astype(np.float32)
    return rows | {
        "labels": labels,
        "start_positions": rng.choice([0, 2, 3], batch).astype(np.int32),
        "end_positions": rng.choice([0, 2, 3], batch).astype(np.int32),
        "is_impossible": rng.integers(0, 2, batch).astype(np.int32),
        "example_weights": np.array([1, 2, 0.5, 1] * batch, np.float32)[:batch],
    }
