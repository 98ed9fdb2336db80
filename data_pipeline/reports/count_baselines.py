"""Masked-LM scores of models that only count: what a trained model has to exceed."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.decoding import read_features
from data_pipeline.records.record_files import RecordFiles

#: Training records that are counted at most, spread evenly over all: enough for a stable score.
MAX_RECORDS = 1 << 18
#: Masked tokens that are predicted at most: the error of an accuracy is 0.2 points at most.
MAX_TOKENS = 1 << 16
_RECORDS_AT_ONCE = 8192
#: Masked tokens that are predicted at a time, each with a row of V probabilities.
_ROWS = 512


class CountScore(NamedTuple):
    """Score of a counting model at masked tokens."""

    masked_lm_loss: float  #: Nats per masked token.
    masked_lm_accuracy: float


def count_baselines(training: RecordFiles, held_out: RecordFiles) -> dict[str, CountScore]:
    """Scores counting models at the masked tokens of held-out records.

    "unigram" knows the frequencies of tokens in the training records, and always predicts the most
    frequent one. "bigram" reads the neighbours l and r of a masked token as well: P(w | l, r) is
    proportional to P(w | l) P(w | r) / P(w), as if l and r were independent given w. Frequencies
    are smoothed by adding 1, and bigrams by the rule of Witten and Bell; a neighbour that is masked
    is unknown to the counts, and so changes nothing. [CLS] and [SEP] are never masked, so they are
    neighbours only.

    Args:
        training: Records to count, at most `MAX_RECORDS` of them; masked tokens are restored.
        held_out: Records with the same vocabulary. At most `MAX_TOKENS` of their masked tokens are
            predicted, the first ones.

    Returns:
        dict of name -> CountScore.

    Raises:
        InputError: If the vocabularies differ, or the held-out records have no masked token.

    Source:
        Witten & Bell (1991): The zero-frequency problem, method C.
    """
    sizes = training.info.vocab_size, held_out.info.vocab_size
    digests = training.info.tokenizer_digest, held_out.info.tokenizer_digest
    if sizes[0] != sizes[1] or digests[0] != digests[1]:
        raise InputError(
            f"`{training.folder}` must be built with the tokenizer of `{held_out.folder}` to be "
            "compared on its records. Received: another tokenizer."
        )
    unigrams, after, special = _count(training)
    prior = (unigrams + 1) / (unigrams.sum() + len(unigrams))
    contexts = _WittenBell(after, prior), _WittenBell(after.T.tocsr(), prior)
    best, rows = int(prior.argmax()), []
    for left, right, labels in itertools.islice(_masked_tokens(held_out), MAX_TOKENS // _ROWS):
        scores = contexts[0].probabilities(left) * contexts[1].probabilities(right) / prior
        scores[:, special] = 0
        chosen = np.take_along_axis(scores, labels[:, None], axis=1)[:, 0]
        bigram = np.log(scores.sum(axis=1) / chosen), scores.argmax(axis=1) == labels
        rows.append(np.stack([-np.log(prior[labels]), labels == best, *bigram]))
    if not rows:
        raise InputError(f"The records of `{held_out.folder}` must have masked tokens.")
    loss, accuracy, bigram_loss, bigram_accuracy = np.concatenate(rows, axis=1).mean(axis=1)
    return {
        "unigram": CountScore(float(loss), float(accuracy)),
        "bigram": CountScore(float(bigram_loss), float(bigram_accuracy)),
    }


class _WittenBell:
    """Conditional frequencies, smoothed by frequencies of single tokens where counts are few."""

    def __init__(self, counts, prior):
        self._counts, self._prior = counts, prior
        self._totals = np.asarray(counts.sum(axis=1))[:, 0]
        self._kinds = np.diff(counts.indptr)  # number of different neighbours of each token

    def probabilities(self, contexts):
        """Returns P(w | context) for all w, float64 [N, V]."""
        kinds = np.maximum(1, self._kinds[contexts])[:, None]
        smoothed = self._counts[contexts].toarray() + kinds * self._prior
        return smoothed / (self._totals[contexts][:, None] + kinds)


def _count(records):
    """Counts tokens, float64 [V], and neighbours: CSR [V, V], left and right token.

    The tokens that begin and end sequences are returned too. They count only as neighbours.
    """
    size = records.info.vocab_size
    unigrams, pairs = np.zeros(size), sparse.csr_matrix((size, size))
    special = np.zeros(0, np.int64)
    numbers = np.linspace(0, len(records) - 1, min(len(records), MAX_RECORDS)).astype(np.int64)
    for begin in range(0, len(numbers), _RECORDS_AT_ONCE):
        chosen = numbers[begin : begin + _RECORDS_AT_ONCE]
        features = read_features(records, chosen)
        ids, real = features["input_ids"], features["input_mask"] > 0
        unmask(*(features[name] for name in MASKED_FEATURES), out=ids)
        unigrams += np.bincount(ids[real], minlength=size)
        last = ids[np.arange(len(ids)), real.sum(axis=1) - 1]
        special = np.union1d(special, np.concatenate([ids[:, 0], last]))
        is_pair = real[:, 1:]
        left, right = ids[:, :-1][is_pair], ids[:, 1:][is_pair]
        found = sparse.coo_matrix((np.ones(len(left)), (left, right)), shape=pairs.shape)
        pairs += found.tocsr()
    unigrams[special] = 0
    return unigrams, pairs, special


def _masked_tokens(records) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yields left neighbours, right neighbours and labels of masked tokens, int [N] each."""
    with records.failures_named():
        for batch in evaluation_dataset(records, 64).as_numpy_iterator():
            is_real = (batch["masked_lm_weights"] > 0) & (batch["example_weights"] > 0)[:, None]
            rows, slots = np.nonzero(is_real)
            places = batch["masked_lm_positions"][rows, slots]
            ids, labels = batch["input_ids"], batch["masked_lm_ids"][rows, slots]
            for begin in range(0, len(rows), _ROWS):
                part = slice(begin, begin + _ROWS)
                at = rows[part], places[part]
                yield ids[at[0], at[1] - 1], ids[at[0], at[1] + 1], labels[part]
