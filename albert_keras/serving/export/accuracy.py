"""What a variant of an export loses against the float32 model, on real text."""

import itertools
import logging
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.text.installed_docs import installed_documentation

logger = logging.getLogger(__name__)

#: Texts that variants are compared on.
NUM_TEXTS = 256
_BATCH_SIZE = 16
#: Texts of the documentation are cut to so many pieces, so that a comparison takes seconds.
_MAX_PIECES = 128
#: Pieces at least on each side of a masked one.
_CONTEXT = 2
#: Share of equal likeliest pieces below which something is probably wrong.
_LEAST_AGREEMENT = 0.9


class AccuracyLoss(NamedTuple):
    """How far the answers of a variant are from those of the float32 model, at masked pieces.

    Attributes:
        num_predictions: int. Masked pieces compared.
        agreement: float. Share of them with the same likeliest piece.
        mean_difference: float. Of the probabilities: half the sum over all pieces, the total
            variation distance, as a mean over predictions.
        largest_difference: float. Of the probability of any piece anywhere.
        loss: float. Masked-LM loss of the variant, in nats.
        float32_loss: float. That of the float32 model.
    """

    num_predictions: int
    agreement: float
    mean_difference: float
    largest_difference: float
    loss: float
    float32_loss: float


def masked_texts(tokenizer, max_seq_length):
    """Takes texts from the documentation of installed packages, one piece of each masked.

    The same installation gives the same texts and masks.

    Args:
        tokenizer: Tokenizer.
        max_seq_length: int. S, not exceeded.

    Returns:
        list of dict. Batches of `NUM_TEXTS` texts in all, as `masked_records` gives them.

    Raises:
        InputError: If there are fewer texts that are long enough.
    """
    random = np.random.default_rng(0)
    length = min(max_seq_length, _MAX_PIECES)
    texts = (document.paragraphs[0] for document in installed_documentation())
    encoded = (tokenizer.encode(text)[: length - 2] for text in texts)
    chosen = itertools.islice((ids for ids in encoded if len(ids) > 2 * _CONTEXT), NUM_TEXTS)
    rows = [[tokenizer.cls_id, *ids, tokenizer.sep_id] for ids in chosen]
    if len(rows) < NUM_TEXTS:
        raise InputError(
            f"Variants are compared on {NUM_TEXTS} texts of the installed documentation. "
            f"Received: {len(rows)} long enough. Give --eval-data."
        )
    batches = []
    for begin in range(0, NUM_TEXTS, _BATCH_SIZE):
        part = rows[begin : begin + _BATCH_SIZE]
        lengths = np.array([len(row) for row in part])
        ids = np.zeros((len(part), length), np.int32)
        for number, row in enumerate(part):
            ids[number, : len(row)] = row
        positions = random.integers(1 + _CONTEXT, lengths - 1 - _CONTEXT)[:, None]
        labels = np.take_along_axis(ids, positions, axis=1)
        np.put_along_axis(ids, positions, tokenizer.mask_id, axis=1)
        batches.append(
            {
                "input_ids": ids,
                "input_mask": (np.arange(length) < lengths[:, None]).astype(np.int32),
                "segment_ids": np.zeros_like(ids),
                "masked_lm_positions": positions.astype(np.int32),
                "masked_lm_ids": labels,
                "masked_lm_weights": np.ones(labels.shape, np.float32),
            }
        )
    return batches


def masked_records(folder, vocab_size, max_seq_length, tokenizer_digest=None):
    """Takes the first records of a folder, with their masks.

    Args:
        folder: str or Path. Of records.
        vocab_size: int. Of the model.
        max_seq_length: int. Longest sequence that the export takes.
        tokenizer_digest: str or None. Of the run's tokenizer.

    Returns:
        list of dict. Batches of at most `NUM_TEXTS` records in all, NumPy: `input_ids`,
        `input_mask`, `segment_ids` int32 [B, S]; `masked_lm_positions`, `masked_lm_ids` int32 and
        `masked_lm_weights` float32 [B, P].

    Raises:
        InputError: If the records were made with another vocabulary or are longer.
    """
    records = RecordFiles(folder)
    info = records.info
    if info.vocab_size != vocab_size:
        raise InputError(
            f"`{records.folder}` should be made with the tokenizer of the run. Received: "
            f"{info.vocab_size} pieces, not {vocab_size}."
        )
    if tokenizer_digest and info.tokenizer_digest not in (None, tokenizer_digest):
        raise InputError(
            f"`{records.folder}` should be made with the tokenizer of the run. Received: another "
            "one of the same size."
        )
    if info.max_seq_length > max_seq_length:
        raise InputError(
            f"The records in `{records.folder}` should not be longer than the export's "
            f"`max_seq_length` ({max_seq_length}). Received: {info.max_seq_length}."
        )
    dataset = evaluation_dataset(records, _BATCH_SIZE).take(NUM_TEXTS // _BATCH_SIZE)
    batches = list(dataset.as_numpy_iterator())
    for batch in batches:
        # The last batch is filled up with a record that does not count.
        batch["masked_lm_weights"] = batch["masked_lm_weights"] * batch["example_weights"][:, None]
    return batches


def graph_logits(stored):
    """Returns a function of a batch that gives a StoredModel's logits, float32 [B, P, V]."""
    names = ("input_ids", "input_mask", "segment_ids")

    @tf.function(reduce_retracing=True)
    def logits(inputs, positions):
        return stored.masked_lm(inputs, positions)

    def of_batch(batch):
        inputs = {name: tf.constant(batch[name]) for name in names}
        return logits(inputs, tf.constant(batch["masked_lm_positions"])).numpy()

    return of_batch


def compare(float32_logits, variants, batches):
    """Compares variants with the float32 model; warns of one that mostly answers otherwise.

    Args:
        float32_logits: callable. Batch → logits, float32 [B, P, V].
        variants: dict of name -> such a callable.
        batches: list of dict. As `masked_texts` or `masked_records` gives them.

    Returns:
        dict of name -> AccuracyLoss.
    """
    sums = {name: [] for name in variants}
    for batch in batches:
        real = batch["masked_lm_weights"] > 0
        labels = batch["masked_lm_ids"][real][:, None]
        expected = _log_probabilities(float32_logits(batch)[real])
        for name, logits in variants.items():
            found = _log_probabilities(logits(batch)[real])
            differences = np.abs(np.exp(found) - np.exp(expected))
            sums[name].append(
                np.stack(
                    [
                        found.argmax(axis=1) == expected.argmax(axis=1),
                        differences.sum(axis=1) / 2,
                        differences.max(axis=1),
                        -np.take_along_axis(found, labels, axis=1)[:, 0],
                        -np.take_along_axis(expected, labels, axis=1)[:, 0],
                    ]
                )
            )
    losses = {}
    for name, parts in sums.items():
        same, difference, largest, loss, float32_loss = np.concatenate(parts, axis=1)
        losses[name] = AccuracyLoss(
            num_predictions=len(same),
            agreement=float(same.mean()),
            mean_difference=float(difference.mean()),
            largest_difference=float(largest.max()),
            loss=float(loss.mean()),
            float32_loss=float(float32_loss.mean()),
        )
        if losses[name].agreement < _LEAST_AGREEMENT:
            logger.warning(
                "%s gives the likeliest piece of float32 in %.1f%% of the cases only",
                name,
                100 * losses[name].agreement,
            )
    return losses


def _log_probabilities(logits):
    """float32 [n, V] -> float32 [n, V]."""
    logits = logits - logits.max(axis=1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
