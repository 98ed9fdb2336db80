"""The n-gram mask: packed sequences → masked sequences, whole words, 80/10/10.

This is the only masking function of the project. It is a pure function of arrays and keys, so the
masks stored in records and the masks sampled in each epoch come from the same code. Each sequence
is masked by a plain loop that numba compiles: 2 µs for 512 tokens, without the interpreter's lock.
"""

import functools
from typing import NamedTuple

import numpy as np

from data_pipeline.config import MaskingConfig
from data_pipeline.randomness import compiled, random_bits
from data_pipeline.tokenizers.tokenization import Tokenizer

_STREAM_VISITS, _STREAM_REPLACEMENTS = 4, 5

#: Features that masking writes.
MASKED_FEATURES = ("input_ids", "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")

# Kinds of positions: within a word, the start of a word, or nothing to mask.
_INSIDE, _START, _OTHER = np.uint8(0), np.uint8(1), np.uint8(2)
# Marks of positions: selected for prediction, visited as the start of an n-gram.
_SELECTED, _VISITED = np.uint8(1), np.uint8(2)


class MaskingVocabulary(NamedTuple):
    """The properties of a vocabulary that masking depends on."""

    starts_word: np.ndarray  # bool [V], whether an entry starts a word
    ordinary_ids: np.ndarray  # int32 [R], ids of all entries that are not special
    mask_id: int
    cls_id: int
    sep_id: int
    pair_separators: int = 1  # [SEP] between the texts of a pair

    @classmethod
    def of(cls, tokenizer: Tokenizer, word_start: str) -> "MaskingVocabulary":
        """Returns the properties of a Tokenizer; `word_start` as in `MaskingConfig`."""
        ids = tokenizer.mask_id, tokenizer.cls_id, tokenizer.sep_id
        starts_word = tokenizer.word_starts(word_start)
        return cls(starts_word, tokenizer.ordinary_ids, *ids, tokenizer.pair_separators)


def ngram_probabilities(max_ngram, favor_shorter_ngram=True):
    """Returns p(1) ... p(N), float64 [N]: p(n) ∝ 1/n, reversed to favor longer n-grams."""
    weights = 1 / np.arange(1, max_ngram + 1)
    weights = weights if favor_shorter_ngram else weights[::-1]
    return weights / weights.sum()


@functools.cache
def _ngram_limits(max_ngram, favor_shorter_ngram):
    """Returns the smallest values of 32 random bits that mean n > 1, n > 2, ...: uint32 [N - 1]."""
    cumulative = ngram_probabilities(max_ngram, favor_shorter_ngram).cumsum()[:-1]
    return np.rint(cumulative * 2.0**32).astype(np.uint32)


def mask_ngrams(
    input_ids: np.ndarray,
    input_mask: np.ndarray,
    keys: np.ndarray,
    vocabulary: MaskingVocabulary,
    masking: MaskingConfig,
    max_predictions_per_seq: int,
    out: dict[str, np.ndarray] | None = None,
) -> dict[str, np.ndarray]:
    """Masks n-grams of whole words and returns the original tokens as labels.

    Words are visited in random order, and at each of them n is sampled. The n-gram of the next n
    words is shortened until it fits the number of predictions that remain. It is skipped if it does
    not fit at all or overlaps a selected token. It never crosses [SEP]. By default a selected token
    becomes [MASK] in 80 % of the cases, is unchanged in 10 % and becomes a random token in 10 %.

    Deviations from google-research/albert, all of them repairs: n-grams end at [SEP], random tokens
    are not special unless requested, and all randomness comes from `keys`.

    Args:
        input_ids: int32 [N, S]. `[CLS] a [SEP] b [SEP]`, padded; any number of segments.
        input_mask: int32 [N, S]. 1 for a token, 0 for padding.
        keys: uint64 [N]. One per sequence; equal keys and ids give equal masks.
        vocabulary: MaskingVocabulary.
        masking: MaskingConfig.
        max_predictions_per_seq: int. P.
        out: dict or None. Arrays to write to, as returned; its `input_ids` may be the argument.

    Returns:
        dict: `input_ids` int32 [N, S], masked; `masked_lm_positions` and `masked_lm_ids` int32
        [N, P], ascending, 0 beyond the last prediction; `masked_lm_weights` float32 [N, P], 1 for a
        prediction, 0 beyond the last one.

    Source:
        ALBERT, section 4.1; `create_masked_lm_predictions` in google-research/albert,
        `create_pretraining_data.py`.
    """
    if out is None:
        predictions = (len(input_ids), max_predictions_per_seq)
        out = {
            "input_ids": np.empty(input_ids.shape, np.int32),
            "masked_lm_positions": np.empty(predictions, np.int32),
            "masked_lm_ids": np.empty(predictions, np.int32),
            "masked_lm_weights": np.empty(predictions, np.float32),
        }
    kind_of_id = np.where(vocabulary.starts_word, _START, _INSIDE)
    kind_of_id[[vocabulary.cls_id, vocabulary.sep_id]] = _OTHER
    replacements = vocabulary.ordinary_ids
    if masking.random_pieces == "all":
        replacements = np.arange(len(vocabulary.starts_word), dtype=np.int32)
    # Of 2 ** 32 random numbers, those below the first limit make [MASK] of a selected token, and
    # those below the second one leave it unchanged.
    kept = 1 - masking.replace_random
    masked = kept - masking.leave_unmasked
    _mask(
        *(out[name] for name in MASKED_FEATURES),
        input_ids,
        input_mask,
        keys,
        kind_of_id,
        vocabulary.mask_id,
        replacements,
        _ngram_limits(masking.max_ngram, masking.favor_shorter_ngram),
        masking.masked_lm_prob,
        np.int64(masked * 2**32),
        np.int64(kept * 2**32),
    )
    return out


def word_boundaries(input_ids, input_mask, vocabulary):
    """Returns `token_boundary` of sequences before masking, int32 [N, S].

    It is 1 for the first token of a word, [CLS] and [SEP].
    """
    special = (input_ids == vocabulary.cls_id) | (input_ids == vocabulary.sep_id)
    starts = vocabulary.starts_word.take(input_ids)
    return ((input_mask != 0) & (starts | special)).astype(np.int32)


def unmask(input_ids, positions, labels, weights, out=None):
    """Restores the original ids of masked sequences, int32 [N, S].

    Args:
        input_ids: int32 [N, S]. Masked.
        positions, labels: int [N, P]. `masked_lm_positions` and `masked_lm_ids`.
        weights: float or int [N, P]. `masked_lm_weights`; entries of weight 0 are ignored.
        out: int32 [N, S] or None. Array to write to; may be `input_ids` itself.
    """
    if out is None:
        out = np.empty(np.shape(input_ids), np.int32)
    if out is not input_ids:
        np.copyto(out, input_ids)
    rows, predictions = np.nonzero(weights)
    out[rows, np.asarray(positions)[rows, predictions]] = np.asarray(labels)[rows, predictions]
    return out


@compiled
def _mask(
    ids,
    positions,
    labels,
    weights,
    input_ids,
    input_mask,
    keys,
    kind_of_id,
    mask_id,
    replacements,
    ngram_limits,
    masked_lm_prob,
    masked_limit,
    kept_limit,
):
    """Masks sequence by sequence; writes to the first four arrays."""
    # Short loops without branches, and unsigned indices: mispredicted branches cost the most here,
    # and a signed index is first checked for being negative.
    kinds = np.empty(2 * (ids.shape[1] + 1), np.uint8)
    marks = np.empty(ids.shape[1] + 1, np.uint8)
    selected = np.empty(ids.shape[1] + 1, np.uint32)
    for row in range(len(ids)):
        sequence, is_token = ids[row], input_mask[row]
        num_tokens, size = 0, len(sequence)
        for position in range(len(sequence)):
            sequence[position] = input_ids[row, position]
            num_tokens += is_token[position] != 0
        while size > 0 and not is_token[size - 1]:
            size -= 1
        num_words = _find_kinds(sequence[:size], is_token, kind_of_id, kinds)
        marks[:size] = 0

        num_to_predict = 0
        if masked_lm_prob > 0:
            wanted = max(int(np.rint(num_tokens * masked_lm_prob)), 1)
            num_to_predict = min(wanted, positions.shape[1])
        key = random_bits(keys[row], _STREAM_VISITS)
        _select_ngrams(kinds, marks, size, num_words, num_to_predict, key, ngram_limits)

        count = np.uint32(0)
        for position in range(np.uint32(size)):
            selected[count] = position
            count += np.uint32(marks[position] & _SELECTED)
        key = random_bits(keys[row], _STREAM_REPLACEMENTS)
        for prediction in range(count):
            position = selected[prediction]
            original = sequence[position]
            positions[row, prediction] = position
            labels[row, prediction] = original
            weights[row, prediction] = 1
            random = random_bits(key, prediction)
            other = replacements[_below(random, len(replacements))]
            lower_half = np.int64(np.uint32(random))
            shown = original if lower_half < kept_limit else other
            sequence[position] = mask_id if lower_half < masked_limit else shown
        for prediction in range(count, positions.shape[1]):
            positions[row, prediction] = labels[row, prediction] = weights[row, prediction] = 0


@compiled
def _find_kinds(sequence, is_token, kind_of_id, kinds):
    """Writes the kind of each position to `kinds` and returns the number of words.

    The position after the last one is nothing to mask.
    """
    by_id = kinds[len(sequence) + 1 :]
    by_id[0] = _OTHER
    for position in range(len(sequence)):
        by_id[position + 1] = kind_of_id[np.uint32(sequence[position])]
    for position in range(len(sequence)):
        by_id[position + 1] = by_id[position + 1] if is_token[position] else _OTHER
    num_words = np.uint32(0)
    for position in range(len(sequence)):
        # The first token of a segment starts a word, even if truncation removed the word's start.
        starts = (by_id[position] == _OTHER) & (by_id[position + 1] == _INSIDE)
        kinds[position] = by_id[position + 1] | starts
        num_words += np.uint32(kinds[position] & _START)
    kinds[len(sequence)] = _OTHER
    return num_words


@compiled
def _select_ngrams(kinds, marks, size, num_words, remaining, key, ngram_limits):
    """Marks the tokens to predict: visits words in random order until none `remaining`.

    Positions are sampled with replacement, and those that start no word or were visited before are
    skipped. The first visits are therefore in uniformly random order.
    """
    samples, visited = np.uint64(0), 0
    while remaining > 0 and visited < num_words:
        random = random_bits(key, samples)
        samples += np.uint64(1)
        begin = np.uint64(_below(random, size))
        if (kinds[begin] != _START) | (marks[begin] >= _VISITED):
            continue
        marks[begin] |= _VISITED
        visited += 1
        n = 1
        for limit in ngram_limits:
            n += np.uint32(random) >= limit
        # Find the longest run of at most n words that fits, and combine all marks in it.
        end, position = begin, begin
        marks_to_end, marks_seen = np.uint8(0), np.uint8(0)
        while n > 0 and kinds[position] != _OTHER:
            marks_seen |= marks[position]
            position += np.uint64(1)
            while kinds[position] == _INSIDE:
                marks_seen |= marks[position]
                position += np.uint64(1)
            if np.int64(position - begin) > remaining:
                break
            end, marks_to_end, n = position, marks_seen, n - 1
        if end > begin and not marks_to_end & _SELECTED:
            for position in range(begin, end):
                marks[position] |= _SELECTED
            remaining -= np.int64(end - begin)


@compiled
def _below(random, size):
    """Maps the upper half of 64 random bits to a number below `size`."""
    return np.int64(((random >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
