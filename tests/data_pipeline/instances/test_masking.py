"""n-grams of whole words are hidden, and what stood there is kept."""

import hashlib

import numpy as np
import pytest

from data_pipeline.config import MaskingConfig
from data_pipeline.instances.masking import (
    MaskingVocabulary,
    mask_ngrams,
    ngram_probabilities,
    unmask,
    word_boundaries,
)
from data_pipeline.randomness import bits, key_of, subkeys

CLS, SEP, MASK, VOCAB = 2, 3, 4, 1000
EVERY_PIECE_A_WORD = MaskingVocabulary(
    np.ones(VOCAB, bool), np.arange(5, VOCAB, dtype=np.int32), MASK, CLS, SEP
)


def sequences(count, first, second, padding=0):
    """Makes `[CLS] a [SEP] b [SEP]` with segments of the given lengths."""
    rng = np.random.default_rng(0)
    size = first + second + 3
    ids = rng.integers(5, VOCAB, (count, size)).astype(np.int32)
    ids[:, 0], ids[:, first + 1], ids[:, -1] = CLS, SEP, SEP
    mask = np.ones_like(ids)
    return np.pad(ids, ((0, 0), (0, padding))), np.pad(mask, ((0, 0), (0, padding)))


def mixed_sequences(count, size):
    """Makes sequences of any length and number of segments, and a vocabulary of long words.

    It is made of `bits`, so it stays the same whatever the version of NumPy.
    """
    draws = bits(subkeys(key_of("mixed"), np.arange(count)), 0, size + 1)
    ids = (5 + draws[:, :size] % np.uint64(VOCAB - 5)).astype(np.int32)
    ids[draws[:, :size] % np.uint64(37) == 0] = SEP
    ids[:, 0] = CLS
    last = (2 + draws[:, size] % np.uint64(size - 2)).astype(np.int64)
    ids[np.arange(count), last] = SEP
    mask = (np.arange(size) <= last[:, None]).astype(np.int32)
    starts = np.arange(VOCAB) % 4 != 0  # words have 1.33 pieces on average
    return ids * mask, mask, EVERY_PIECE_A_WORD._replace(starts_word=starts)


def masked(ids, mask, predictions=77, vocabulary=EVERY_PIECE_A_WORD, **changes):
    keys = subkeys(key_of("masks", 0), np.arange(len(ids)))
    return mask_ngrams(ids, mask, keys, vocabulary, MaskingConfig(**changes), predictions)


def test_probabilities_are_those_of_the_paper():
    np.testing.assert_allclose(ngram_probabilities(3), [6 / 11, 3 / 11, 2 / 11])
    np.testing.assert_allclose(ngram_probabilities(3, False), [2 / 11, 3 / 11, 6 / 11])


@pytest.mark.parametrize("unmasked, random", [(0.1, 0.1), (0, 0), (0.5, 0.5)])
def test_replacements_have_their_fractions_and_leave_the_positions_alone(unmasked, random):
    ids, mask = sequences(3000, 254, 254)
    found = masked(ids, mask, leave_unmasked=unmasked, replace_random=random)
    shown = np.take_along_axis(found["input_ids"], found["masked_lm_positions"], axis=1)
    is_mask, is_same = shown == MASK, shown == found["masked_lm_ids"]
    assert is_mask.mean() == pytest.approx(1 - unmasked - random, abs=0.004 * bool(random))
    assert is_same.mean() == pytest.approx(unmasked + random / 995, abs=0.004)
    counts = np.bincount(shown[~is_mask & ~is_same], minlength=VOCAB)[5:]
    if random:  # each of them is as likely as any other
        assert ((counts - counts.mean()) ** 2).sum() / counts.mean() < 995 + 5 * (2 * 995) ** 0.5
    usual = masked(ids, mask)["masked_lm_positions"]
    np.testing.assert_array_equal(found["masked_lm_positions"], usual)


def test_a_cut_off_word_that_opens_the_second_segment_is_a_word_of_its_own():
    starts = np.zeros(VOCAB, bool)
    starts[5] = True
    vocabulary = EVERY_PIECE_A_WORD._replace(starts_word=starts)
    ids = np.array([[CLS, 5, SEP, 6, SEP]], np.int32).repeat(400, axis=0)
    found = masked(ids, np.ones_like(ids), 1, vocabulary)
    assert set(found["masked_lm_positions"][:, 0]) == {1, 3}
    boundaries = word_boundaries(ids, np.ones_like(ids), vocabulary)
    assert boundaries[0].tolist() == [1, 1, 1, 0, 1]


@pytest.mark.parametrize(
    "predictions, changes",
    [
        (20, {}),
        (2, {"max_ngram": 1}),
        (60, {"max_ngram": 10, "favor_shorter_ngram": False}),
        (60, {"masked_lm_prob": 1.0, "max_ngram": 2}),
    ],
)
def test_whole_words_of_the_text_are_hidden_and_can_be_restored(changes, predictions):
    ids, mask, vocabulary = mixed_sequences(300, 80)
    found = masked(ids, mask, predictions, vocabulary, **changes)
    parts = [found[f"masked_lm_{name}"] for name in ("positions", "ids", "weights")]
    assert (found["input_ids"] != ids).any()
    np.testing.assert_array_equal(unmask(found["input_ids"], *parts), ids)
    is_text = (mask > 0) & (ids != CLS) & (ids != SEP)
    is_first = is_text & ~np.roll(is_text, 1, axis=1)  # also if truncation removed its start
    words = np.cumsum(is_first | (is_text & vocabulary.starts_word[ids]), axis=1)
    for row, (positions, weights) in enumerate(zip(parts[0], parts[2], strict=True)):
        hidden = positions[weights > 0].tolist()
        is_hidden = is_text[row] & np.isin(words[row], words[row][hidden])
        assert hidden == np.flatnonzero(is_hidden).tolist()
        wanted = max(1, round(mask[row].sum() * changes.get("masked_lm_prob", 0.15)))
        assert len(hidden) <= min(predictions, wanted)


def test_masks_never_change_in_silence():
    """If this fails on purpose, new records and masks differ from earlier ones."""
    ids, mask, vocabulary = mixed_sequences(100, 128)
    digest = hashlib.sha256()
    for changes in ({}, {"max_ngram": 1, "random_pieces": "all"}, {"masked_lm_prob": 0.5}):
        found = masked(ids, mask, 20, vocabulary, **changes)
        for name in sorted(found):
            digest.update(found[name].tobytes())
    assert digest.hexdigest() == "b07509b5446d70bccb15296049600dcc5115cd53eb8395dadbd60ee4aefb31e4"
