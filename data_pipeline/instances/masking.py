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

#: What masking writes.
MASKED = ("input_ids", "masked_lm_positions", "masked_lm_ids", "masked_lm_weights")

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


def mask_ngrams(
    input_ids, input_mask, keys, vocabulary, masking, max_predictions_per_seq, out=None
):
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
        out: dict or None. Arrays to write to, as returned; its `input_ids` may be those given.

    Returns:
        dict: `input_ids` int32 [N, S], masked; `masked_lm_positions` and `masked_lm_ids` int32
        [N, P], ascending, 0 beyond the last prediction; `masked_lm_weights` float32 [N, P], 1 for a
        real prediction.

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
    _mask(
        *(out[name] for name in MASKED),
        input_ids,
        input_mask,
        keys,
        kind_of_id,
        vocabulary.mask_id,
        replacements,
        _ngram_limits(masking.max_ngram, masking.favor_shorter_ngram),
        masking.masked_lm_prob,
    )
    return out


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


def unmask(input_ids, positions, labels, weights, out=None):
    """Restores the text of masked sequences.

    Args:
        input_ids: int32 [N, S]. Masked.
        positions: int [N, P]. `masked_lm_positions`.
        labels: int [N, P]. `masked_lm_ids`, what stood there.
        weights: float or int [N, P]. `masked_lm_weights`; entries of weight 0 are ignored.
        out: int32 [N, S] or None. Array to write to; may be `input_ids` itself.

    Returns:
        int32 [N, S].
    """
    if out is None:
        out = np.empty(np.shape(input_ids), np.int32)
    if out is not input_ids:
        np.copyto(out, input_ids)
    _restore(out, positions, labels, weights)
    return out


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
    # Short loops without branches, and unsigned indices: what cannot be foreseen costs the most
    # here, and a signed index is looked at first for whether it counts from the end.
    kinds = np.empty(2 * (ids.shape[1] + 1), np.uint8)
    marks = np.empty(ids.shape[1] + 1, np.uint8)
    hidden = np.empty(ids.shape[1] + 1, np.uint32)
    for row in range(len(ids)):
        text, real_places = ids[row], input_mask[row]
        real, size = 0, len(text)
        for place in range(len(text)):
            text[place] = input_ids[row, place]
            real += real_places[place] != 0
        while size > 0 and not real_places[size - 1]:
            size -= 1
        num_words = _tell_kinds(text[:size], real_places, kind_of_id, kinds)
        marks[:size] = 0

        quota = 0
        if masked_lm_prob > 0:
            quota = min(max(int(np.rint(real * masked_lm_prob)), 1), positions.shape[1])
        key = draw_bits(keys[row], _STREAM_VISITS)
        _choose_ngrams(kinds, marks, size, num_words, quota, key, ngram_limits)

        count = np.uint32(0)
        for place in range(np.uint32(size)):
            hidden[count] = place
            count += np.uint32(marks[place] & _HIDDEN)
        key = draw_bits(keys[row], _STREAM_REPLACEMENTS)
        for prediction in range(count):
            place = hidden[prediction]
            original = text[place]
            positions[row, prediction] = place
            labels[row, prediction] = original
            weights[row, prediction] = 1
            draw = draw_bits(key, prediction)
            other = replacements[_below(draw, len(replacements))]
            shown = original if np.uint32(draw) < _KEPT else other
            text[place] = mask_id if np.uint32(draw) < _MASKED else shown
        for prediction in range(count, positions.shape[1]):
            positions[row, prediction] = labels[row, prediction] = weights[row, prediction] = 0


@compiled
def _tell_kinds(text, real_places, kind_of_id, kinds):
    """Writes what each place is: within a word, the start of one, or nothing to hide.

    Returns the number of words. The place after the last one is nothing to hide.
    """
    given = kinds[len(text) + 1 :]
    given[0] = _OTHER
    for place in range(len(text)):
        given[place + 1] = kind_of_id[np.uint32(text[place])]
    for place in range(len(text)):
        given[place + 1] = given[place + 1] if real_places[place] else _OTHER
    num_words = np.uint32(0)
    for place in range(len(text)):
        # The first piece of a segment opens a word even when the word was cut off before it.
        opens = (given[place] == _OTHER) & (given[place + 1] == _INSIDE)
        kinds[place] = given[place + 1] | opens
        num_words += np.uint32(kinds[place] & _START)
    kinds[len(text)] = _OTHER
    return num_words


@compiled
def _choose_ngrams(kinds, marks, size, num_words, quota, key, ngram_limits):
    """Marks the pieces to hide: visits words in random order until the quota is filled.

    Places are drawn with replacement, and what is no start of a word or was visited before is
    passed over: the first visits come in uniformly random order.
    """
    draws, visited = np.uint64(0), 0
    while quota > 0 and visited < num_words:
        draw = draw_bits(key, draws)
        draws += np.uint64(1)
        begin = np.uint64(_below(draw, size))
        if (kinds[begin] != _START) | (marks[begin] >= _VISITED):
            continue
        marks[begin] |= _VISITED
        visited += 1
        n = 1
        for limit in ngram_limits:
            n += np.uint32(draw) >= limit
        # The longest run of at most n words that the quota has room for, and all marks in it.
        end, place = begin, begin
        touched, seen = np.uint8(0), np.uint8(0)
        while n > 0 and kinds[place] != _OTHER:
            seen |= marks[place]
            place += np.uint64(1)
            while kinds[place] == _INSIDE:
                seen |= marks[place]
                place += np.uint64(1)
            if np.int64(place - begin) > quota:
                break
            end, touched, n = place, seen, n - 1
        if end > begin and not touched & _HIDDEN:
            for place in range(begin, end):
                marks[place] |= _HIDDEN
            quota -= np.int64(end - begin)


@compiled
def _below(draw, size):
    """Turns the upper half of 64 random bits into a number below `size`."""
    return np.int64(((draw >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))
