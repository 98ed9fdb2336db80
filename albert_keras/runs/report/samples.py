"""Masked tokens of held-out records, and what the model of a run fills in."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.training.scored_model import open_scored_model
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_folder import RecordFiles

_CANDIDATES = 5
#: The model's inputs among the features of a batch.
_INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


class Token(NamedTuple):
    """A token of a text; with guesses if it was masked."""

    text: str  # with a space in front if a word begins here
    guesses: tuple[tuple[str, float], ...] = ()  # pieces, the most likely first


class Samples(NamedTuple):
    """Records with their masked tokens filled."""

    data: Path  # the folder of the records
    step: int  # the checkpoint
    texts: list[list[Token]]


def fill_samples(run: Path, data: Path, count: int) -> Samples:
    """Lets the model of a pre-training fill the masks of some records, the same every time.

    Args:
        run: The folder of the run.
        data: A folder of records, built with its tokenizer.
        count: Number of records, taken at regular distances.

    Raises:
        InputError: If the run has no checkpoint or no tokenizer, or the records do not suit it.
    """
    records = RecordFiles(data)
    opened = open_scored_model(run)
    opened.check_records(records)
    if not len(records):
        raise InputError(f"`{data}` must contain records. Received: 0 records.")
    tokenizer, model = opened.weights.tokenizer, opened.load()
    distance = max(len(records) // count, 1)
    dataset = evaluation_dataset(records, 1).shard(distance, 0).take(count)
    texts = []
    with records.failures_named():
        for batch in dataset.as_numpy_iterator():
            logits = model({name: batch[name] for name in _INPUTS})["masked_lm_logits"].numpy()[0]
            texts.append(_filled(batch, np.asarray(logits, np.float64), tokenizer))
    return Samples(data, opened.weights.step, texts)


def _filled(batch, logits, tokenizer):
    real = batch["masked_lm_weights"][0] > 0
    positions = batch["masked_lm_positions"][0][real].tolist()
    rows = dict(zip(positions, logits[real], strict=True))
    truths = dict(zip(positions, batch["masked_lm_ids"][0][real].tolist(), strict=True))
    tokens = []
    for position in range(int(batch["input_mask"][0].sum())):
        id = truths.get(position, int(batch["input_ids"][0][position]))
        guesses = _guesses(rows[position], tokenizer) if position in rows else ()
        tokens.append(Token(_readable(id, tokenizer), guesses))
    return tokens


def _guesses(logits, tokenizer):
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    best = np.argsort(-probabilities)[:_CANDIDATES].tolist()
    return tuple((_readable(id, tokenizer), float(probabilities[id])) for id in best)


def _readable(id, tokenizer):
    has_space, piece = tokenizer.shown(id)
    is_special = id in (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    return f" {piece}" if has_space or is_special else piece
