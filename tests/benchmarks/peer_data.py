"""What peers train on and are scored on: the records as NumPy arrays, and masks of their own."""

from collections.abc import Iterator

import numpy as np

from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Features of a training record, and of a held-out record, which has additional ones.
TRAINING = ("input_ids", "input_mask", "segment_ids")
HELD_OUT = (*TRAINING, "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
IGNORED = -100  # the label of PyTorch's loss for positions without one


def arrays_of(records: RecordFiles, features: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Returns features of all records, [N, ...]: `TRAINING` without masks, `HELD_OUT` with them."""
    batches = []
    for batch in evaluation_dataset(records, 64).as_numpy_iterator():
        if features == TRAINING:
            batch["input_ids"] = unmask(*(batch[name] for name in MASKED_FEATURES))
        real = batch["example_weights"] > 0
        batches.append({name: batch[name][real] for name in features})
    return {name: np.concatenate([batch[name] for batch in batches]) for name in features}


def rows_of_batches(num_records: int, batch_size: int, seed: int) -> Iterator[np.ndarray]:
    """Yields the rows of training batches, int64 [B], endlessly; each epoch has a new order."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(0, np.int64)
    while True:
        while len(rows) < batch_size:
            rows = np.concatenate([rows, rng.permutation(num_records)])
        yield rows[:batch_size]
        rows = rows[batch_size:]


def masking_function(tokenizer: Tokenizer, rate: float, seed: int):
    """Returns a function that masks int64 [B, S] and also returns the labels.

    It is the rule of transformers' DataCollatorForLanguageModeling: each ordinary token is selected
    with probability `rate`; of those 80 % become [MASK], 10 % any entry of the vocabulary, and 10 %
    are unchanged. The label of all others is -100.
    """
    rng = np.random.default_rng(seed + 1)
    is_ordinary = np.isin(np.arange(tokenizer.vocab_size), tokenizer.ordinary_ids)

    def mask(ids):
        selected = (rng.random(ids.shape) < rate) & is_ordinary[ids]
        kind = rng.random(ids.shape)
        others = rng.integers(0, tokenizer.vocab_size, ids.shape)
        replaced = np.where(kind < 0.8, tokenizer.mask_id, np.where(kind < 0.9, others, ids))
        return np.where(selected, replaced, ids), np.where(selected, ids, IGNORED)

    return mask
