"""Packed sequences → masked sequences: n-grams of whole words, 80/10/10, whole batches at once.

The one masking function of the project. It is a pure function of arrays and keys, so records
written once and masks drawn anew in each epoch come from the same code.
"""

from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import uniform

_STREAM_ORDER, _STREAM_LENGTH, _STREAM_KIND, _STREAM_RANDOM_ID = 4, 5, 6, 7


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


def mask_ngrams(input_ids, input_mask, keys, vocabulary, masking, max_predictions_per_seq):
    """Hides n-grams of words and records what stood there.

    Words are visited in random order. At each an n is drawn; the n-gram of the next n words is
    shortened until it fits what is left of the quota, and passed over if it does not fit at all or
    touches a masked piece. It never crosses [SEP]. A hidden piece becomes [MASK] in 80 %, stays in
    10 % and turns into a random ordinary piece in 10 % of the cases.

    Deviations from google-research/albert, all of them repairs: n-grams end at [SEP], random
    pieces are never special ones, and every draw comes from `keys`.

    Args:
        input_ids: int32 [N, S]. `[CLS] a [SEP] b [SEP]`, padded.
        input_mask: int32 [N, S]. 1 for a real piece.
        keys: uint64 [N]. One per sequence; equal keys and ids give equal masks.
        vocabulary: MaskingVocabulary.
        masking: MaskingConfig.
        max_predictions_per_seq: int. P.

    Returns:
        dict: `input_ids` int32 [N, S], masked; `token_boundary` int32 [N, S], 1 where a word
        starts (and on [CLS] and [SEP]); `masked_lm_positions` and `masked_lm_ids` int32 [N, P],
        ascending, 0 beyond the last prediction; `masked_lm_weights` float32 [N, P], 1 for a real
        prediction.

    Source:
        ALBERT, section 4.1; `create_masked_lm_predictions` in google-research/albert,
        `create_pretraining_data.py`.
    """
    real = input_mask.astype(bool)
    special = (input_ids == vocabulary.cls_id) | (input_ids == vocabulary.sep_id)
    maskable = real & ~special
    starts_word = vocabulary.starts_word[input_ids]
    words = _words(maskable, starts_word)

    quota = np.rint(real.sum(axis=1) * masking.masked_lm_prob).astype(np.int64)
    quota = np.minimum(np.maximum(quota, 1), max_predictions_per_seq)
    if masking.masked_lm_prob == 0:
        quota[:] = 0
    covered = _cover_ngrams(words, quota, keys, masking)  # [N, W]
    hidden = maskable & np.take_along_axis(covered, np.maximum(words.of_piece, 0), axis=1)

    positions, real_prediction = _positions(hidden, max_predictions_per_seq)  # [N, P]
    originals = np.where(real_prediction, np.take_along_axis(input_ids, positions, axis=1), 0)
    masked_ids = input_ids.copy()
    row, column = np.nonzero(real_prediction)
    replacements = _replacements(originals, keys, vocabulary)
    masked_ids[row, positions[row, column]] = replacements[row, column]
    return {
        "input_ids": masked_ids,
        "token_boundary": (real & (starts_word | special)).astype(np.int32),
        "masked_lm_positions": positions.astype(np.int32),
        "masked_lm_ids": originals.astype(np.int32),
        "masked_lm_weights": real_prediction.astype(np.float32),
    }


class _Words(NamedTuple):
    """The words of N sequences, at most W in each.

    of_piece: int64 [N, S]. Number of the word that a piece belongs to; -1 before the first.
    length: int64 [N, W]. Its pieces; 0 where a sequence has fewer words.
    left: int64 [N, W]. Words from this one to the end of its segment, itself included.
    """

    of_piece: np.ndarray
    length: np.ndarray
    left: np.ndarray


def _words(maskable, starts_word):
    # The first piece of a segment opens a word even when the word was cut off before it.
    opens_segment = maskable & ~np.pad(maskable, ((0, 0), (1, 0)))[:, :-1]
    opens_word = maskable & (starts_word | opens_segment)
    of_piece = np.cumsum(opens_word, axis=1) - 1  # [N, S]
    shape = (len(maskable), int(of_piece.max(initial=0)) + 1)

    row, piece = np.nonzero(maskable)
    length = np.zeros(shape, np.int64)
    np.add.at(length, (row, of_piece[row, piece]), 1)

    row, piece = np.nonzero(opens_word)
    segment = np.zeros(shape, np.int64)  # 1 for A, 2 for B, 0 for no word
    segment[row, of_piece[row, piece]] = np.cumsum(opens_segment, axis=1)[row, piece]
    left = np.zeros(shape, np.int64)
    for number in range(1, int(segment.max(initial=0)) + 1):
        inside = segment == number
        left[inside] = np.cumsum(inside[:, ::-1], axis=1)[:, ::-1][inside]
    return _Words(of_piece, length, left)


def _cover_ngrams(words, quota, keys, masking):
    """Chooses the words to hide, bool [N, W]: all sequences take their next step together."""
    num_words, longest = words.length.shape[1], masking.max_ngram
    order = uniform(keys, _STREAM_ORDER, num_words)
    order = np.where(words.length > 0, order, 2).argsort(axis=1)  # words that are none come last
    upto = ngram_probabilities(longest, masking.favor_shorter_ngram).cumsum()[:-1]
    drawn = 1 + np.searchsorted(upto, uniform(keys, _STREAM_LENGTH, num_words), side="right")
    drawn = np.minimum(drawn, words.left)  # clipped at the end of the segment
    edges = np.pad(words.length.cumsum(axis=1), ((0, 0), (1, 0)))  # pieces before each word

    covered = np.zeros((len(quota), num_words + longest), bool)
    room = quota.copy()
    for visit in range(num_words):
        row = np.flatnonzero(room)
        if not row.size:
            break
        word = order[row, visit]
        n = drawn[row, word]
        for _ in range(longest - 1):
            too_long = edges[row, word + n] - edges[row, word] > room[row]
            n = np.where(too_long & (n > 1), n - 1, n)
        size = edges[row, word + n] - edges[row, word]
        chosen = (n > 0) & (size <= room[row])
        for offset in range(longest):
            chosen &= ~((offset < n) & covered[row, word + offset])
        for offset in range(longest):
            covered[row, word + offset] |= chosen & (offset < n)
        room[row] -= np.where(chosen, size, 0)
    return covered[:, :num_words]


def _positions(hidden, max_predictions_per_seq):
    """Lists the hidden places of each row in ascending order, [N, P], and which are real."""
    positions = np.zeros((len(hidden), max_predictions_per_seq), np.int64)
    real = np.zeros(positions.shape, bool)
    row, piece = np.nonzero(hidden)
    column = (np.cumsum(hidden, axis=1) - 1)[row, piece]
    positions[row, column], real[row, column] = piece, True
    return positions, real


def _replacements(originals, keys, vocabulary):
    """Draws for each prediction on its own: 80 % [MASK], 10 % itself, 10 % a random piece."""
    kind = uniform(keys, _STREAM_KIND, originals.shape[1])
    choice = uniform(keys, _STREAM_RANDOM_ID, originals.shape[1])
    random_ids = vocabulary.ordinary_ids[(choice * len(vocabulary.ordinary_ids)).astype(np.int64)]
    return np.where(kind < 0.8, vocabulary.mask_id, np.where(kind < 0.9, originals, random_ids))
