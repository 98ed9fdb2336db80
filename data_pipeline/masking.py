"""Packed sequences → masked sequences: n-grams of whole words, 80/10/10, whole batches at once.

The one masking function of the project. It is a pure function of arrays and keys, so records
written once and masks drawn anew in each epoch come from the same code. The work on a sequence is
a plain loop, compiled by numba: 2 µs for 512 pieces, without the interpreter's lock.
"""

import functools
from typing import NamedTuple

import numpy as np

from data_pipeline.compiled import compiled
from data_pipeline.randomness import draw_bits

_STREAM_VISITS, _STREAM_REPLACEMENTS = 4, 5

#: Of 2 ** 32: below the first a hidden piece becomes [MASK], below the second it stays.
_MASKED, _KEPT = np.uint32(0.8 * 2**32), np.uint32(0.9 * 2**32)


_INSIDE, _START, _OTHER = np.uint8(0), np.uint8(1), np.uint8(2)
_HIDDEN, _VISITED = np.uint8(1), np.uint8(2)


class MaskingVocabulary(NamedTuple):
    """What masking has to know of a vocabulary.

    Attributes:
        starts_word: bool [V]. Pieces that open a word.
        ordinary_ids: int32 [R]. Pieces that may stand in for a masked one: no special ones.
        mask_id, cls_id, sep_id: int.
    """

    starts_word: np.ndarray
    ordinary_ids: np.ndarray
    mask_id: int
    cls_id: int
    sep_id: int

    @classmethod
    def of(cls, tokenizer, word_start):
        """Reads it off a Tokenizer; `word_start` as in `MaskingConfig`."""
        return cls(
            tokenizer.word_starts(word_start),
            tokenizer.ordinary_ids,
            tokenizer.mask_id,
            tokenizer.cls_id,
            tokenizer.sep_id,
        )


def ngram_probabilities(max_ngram, favor_shorter_ngram=True):
    """Returns p(1) ... p(N), float64 [N]: p(n) ∝ 1/n, reversed if longer ones are favoured."""
    weights = 1 / np.arange(1, max_ngram + 1)
    weights = weights if favor_shorter_ngram else weights[::-1]
    return weights / weights.sum()


@functools.cache
def _ngram_limits(max_ngram, favor_shorter_ngram):
    """Returns what 32 random bits have to reach for n > 1, n > 2, ...: uint32 [N - 1]."""
    upto = ngram_probabilities(max_ngram, favor_shorter_ngram).cumsum()[:-1]
    return np.rint(upto * 2.0**32).astype(np.uint32)


def mask_ngrams(input_ids, input_mask, keys, vocabulary, masking, max_predictions_per_seq):
    """Hides n-grams of words and records what stood there.

    Words are visited in random order. At each an n is drawn; the n-gram of the next n words is
    shortened until it fits what is left of the quota, and passed over if it does not fit at all or
    touches a masked piece. It never crosses [SEP]. A hidden piece becomes [MASK] in 80 %, stays in
    10 % and turns into a random piece in 10 % of the cases.

    Deviations from google-research/albert, all of them repairs: n-grams end at [SEP], random
    pieces are not special ones unless asked for, and every draw comes from `keys`.

    Args:
        input_ids: int32 [N, S]. `[CLS] a [SEP] b [SEP]`, padded; any number of segments.
        input_mask: int32 [N, S]. 1 for a real piece.
        keys: uint64 [N]. One per sequence; equal keys and ids give equal masks.
        vocabulary: MaskingVocabulary.
        masking: MaskingConfig.
        max_predictions_per_seq: int. P.

    Returns:
        dict: `input_ids` int32 [N, S], masked; `masked_lm_positions` and `masked_lm_ids` int32
        [N, P], ascending, 0 beyond the last prediction; `masked_lm_weights` float32 [N, P], 1 for a
        real prediction.

    Source:
        ALBERT, section 4.1; `create_masked_lm_predictions` in google-research/albert,
        `create_pretraining_data.py`.
    """
    predictions = (len(input_ids), max_predictions_per_seq)
    masked = {
        "input_ids": np.empty(input_ids.shape, np.int32),
        "masked_lm_positions": np.zeros(predictions, np.int32),
        "masked_lm_ids": np.zeros(predictions, np.int32),
        "masked_lm_weights": np.zeros(predictions, np.float32),
    }
    kind_of_id = np.where(vocabulary.starts_word, _START, _INSIDE)
    kind_of_id[[vocabulary.cls_id, vocabulary.sep_id]] = _OTHER
    replacements = vocabulary.ordinary_ids
    if masking.random_pieces == "all":
        replacements = np.arange(len(vocabulary.starts_word), dtype=np.int32)
    _mask(
        *masked.values(),
        input_ids,
        input_mask,
        keys,
        kind_of_id,
        vocabulary.mask_id,
        replacements,
        _ngram_limits(masking.max_ngram, masking.favor_shorter_ngram),
        masking.masked_lm_prob,
    )
    return masked


def word_boundaries(input_ids, input_mask, vocabulary):
    """Tells where words start.

    Args:
        input_ids, input_mask: int32 [N, S]. Before masking.
        vocabulary: MaskingVocabulary.

    Returns:
        int32 [N, S]. `token_boundary`: 1 on a piece that opens a word, on [CLS] and on [SEP].
    """
    special = (input_ids == vocabulary.cls_id) | (input_ids == vocabulary.sep_id)
    starts = vocabulary.starts_word.take(input_ids)
    return ((input_mask != 0) & (starts | special)).astype(np.int32)


def unmask(input_ids, positions, labels, weights):
    """Restores the text of masked sequences.

    Args:
        input_ids: int32 [N, S]. Masked.
        positions: int [N, P]. `masked_lm_positions`.
        labels: int [N, P]. `masked_lm_ids`, what stood there.
        weights: float or int [N, P]. `masked_lm_weights`; entries of weight 0 are ignored.

    Returns:
        int32 [N, S].
    """
    restored = np.array(input_ids, np.int32, order="C")
    _restore(restored, positions, labels, weights)
    return restored


@compiled
def _restore(ids, positions, labels, weights):
    for row in range(len(ids)):
        for place in range(positions.shape[1]):
            if weights[row, place]:
                ids[row, positions[row, place]] = labels[row, place]


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
):
    """Masks sequence by sequence; the first four arrays are written to."""
    kinds = np.empty(ids.shape[1] + 1, np.uint8)
    marks = np.empty(ids.shape[1] + 1, np.uint8)
    for row in range(len(ids)):
        real, size = 0, ids.shape[1]
        for place in range(ids.shape[1]):
            ids[row, place] = input_ids[row, place]
            real += input_mask[row, place] != 0
        while size > 0 and not input_mask[row, size - 1]:
            size -= 1
        # What each place is: within a word, the start of one, or nothing to hide.
        num_words, kind = 0, _OTHER
        for place in range(size):
            here = kind_of_id[ids[row, place]] if input_mask[row, place] else _OTHER
            # The first piece of a segment opens a word even when the word was cut off before it.
            kind = _START if kind == _OTHER and here == _INSIDE else here
            kinds[place] = kind
            num_words += kind == _START
        kinds[size] = _OTHER
        marks[:size] = 0

        quota = 0
        if masked_lm_prob > 0:
            quota = min(max(int(np.rint(real * masked_lm_prob)), 1), positions.shape[1])
        key = draw_bits(keys[row], _STREAM_VISITS)
        _choose_ngrams(kinds, marks, size, num_words, quota, key, ngram_limits)

        key, prediction = draw_bits(keys[row], _STREAM_REPLACEMENTS), 0
        for place in range(size):
            if marks[place] & _HIDDEN:
                original = ids[row, place]
                positions[row, prediction] = place
                labels[row, prediction] = original
                weights[row, prediction] = 1
                draw = draw_bits(key, prediction)
                # Chosen, not branched to: what cannot be foreseen costs more than what is not used.
                other = replacements[_below(draw, len(replacements))]
                shown = original if np.uint32(draw) < _KEPT else other
                ids[row, place] = mask_id if np.uint32(draw) < _MASKED else shown
                prediction += 1


@compiled
def _choose_ngrams(kinds, marks, size, num_words, quota, key, ngram_limits):
    """Marks the pieces to hide: visits words in random order until the quota is filled.

    Places are drawn with replacement, and what is no start of a word or was visited before is
    passed over: the first visits come in uniformly random order.
    """
    draws, visited = 0, 0
    while quota > 0 and visited < num_words:
        draw = draw_bits(key, draws)
        draws += 1
        begin = _below(draw, size)
        if kinds[begin] != _START or marks[begin] & _VISITED:
            continue
        marks[begin] |= _VISITED
        visited += 1
        n = 1
        for limit in ngram_limits:
            n += np.uint32(draw) >= limit
        # The longest run of at most n words that the quota has room for.
        end, place = begin, begin
        while n > 0 and kinds[place] != _OTHER:
            place += 1
            while kinds[place] == _INSIDE:
                place += 1
            if place - begin > quota:
                break
            end, n = place, n - 1
        free = end > begin
        for place in range(begin, end):
            free = free and not marks[place] & _HIDDEN
        if free:
            for place in range(begin, end):
                marks[place] |= _HIDDEN
            quota -= end - begin


@compiled
def _below(draw, size):
    """Turns the upper half of 64 random bits into a number below `size`."""
    return np.int64(((draw >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
