"""The masked-LM head begins by knowing how frequent each piece is."""

import numpy as np

from data_pipeline.reader.reader import evaluation_dataset

#: Records counted: some ten thousand masked pieces, read in less than a second.
_RECORDS = 2048
_BATCH = 64


def log_frequencies(records):
    """Estimates the logarithm of each piece's share among the masked ones.

    Records lie in random order, so the first ones are a fair sample. Every piece counts once more
    than it was seen.

    Args:
        records: RecordFiles.

    Returns:
        float32 [V], natural logarithms.
    """
    counts = np.ones(records.info.vocab_size, np.int64)
    dataset = evaluation_dataset(records, _BATCH).take(_RECORDS // _BATCH)
    for batch in dataset.as_numpy_iterator():
        real = (batch["masked_lm_weights"] * batch["example_weights"][:, None]) > 0
        counts += np.bincount(batch["masked_lm_ids"][real], minlength=len(counts))
    return np.log(counts / counts.sum()).astype(np.float32)
