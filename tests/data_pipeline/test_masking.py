"""n-grams of whole words are hidden, and what stood there is kept."""

import numpy as np
import pytest

from data_pipeline.config import MaskingConfig
from data_pipeline.masking import MaskingVocabulary, mask_ngrams, ngram_probabilities
from data_pipeline.randomness import key_of, subkeys

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


def masked(ids, mask, predictions=77, vocabulary=EVERY_PIECE_A_WORD, seed=0, **changes):
    keys = subkeys(key_of("masks", seed), np.arange(len(ids)))
    return mask_ngrams(ids, mask, keys, vocabulary, MaskingConfig(**changes), predictions)


def test_probabilities_are_those_of_the_paper():
    np.testing.assert_allclose(ngram_probabilities(3), [6 / 11, 3 / 11, 2 / 11])
    np.testing.assert_allclose(ngram_probabilities(3, False), [2 / 11, 3 / 11, 6 / 11])


@pytest.mark.parametrize("predictions, quota", [(77, 77), (20, 20)])
def test_the_quota_is_fifteen_percent_or_the_limit(predictions, quota):
    found = masked(*sequences(50, 254, 254), predictions)["masked_lm_weights"]
    assert (found.sum(axis=1) == quota).all() and found.shape == (50, predictions)


def test_the_quota_is_rounded_half_to_even_and_never_below_one():
    found = masked(*sequences(20, 14, 13), 9)["masked_lm_weights"]  # 30 pieces: 4.5
    assert (found.sum(axis=1) == 4).all()
    assert (masked(*sequences(20, 1, 1), 9)["masked_lm_weights"].sum(axis=1) == 1).all()


def test_predictions_are_sorted_distinct_and_true():
    ids, mask = sequences(200, 60, 40, padding=20)
    found = masked(ids, mask, 20)
    for row in range(200):
        real = found["masked_lm_weights"][row] > 0
        positions = found["masked_lm_positions"][row][real]
        assert (np.diff(positions) > 0).all()
        np.testing.assert_array_equal(found["masked_lm_ids"][row][real], ids[row, positions])
        assert not np.isin(ids[row, positions], [CLS, SEP]).any() and positions.max() < 103
        assert not found["masked_lm_positions"][row][~real].any()


def test_only_hidden_places_change():
    ids, mask = sequences(200, 60, 40, padding=20)
    found = masked(ids, mask, 20)
    changed = found["input_ids"] != ids
    for row in range(200):
        assert set(np.flatnonzero(changed[row])) <= set(found["masked_lm_positions"][row])


def test_replacements_are_eighty_ten_ten():
    ids, mask = sequences(3000, 254, 254)
    found = masked(ids, mask)
    shown = np.take_along_axis(found["input_ids"], found["masked_lm_positions"], axis=1)
    is_mask, is_same = (shown == MASK).mean(), (shown == found["masked_lm_ids"]).mean()
    assert is_mask == pytest.approx(0.8, abs=0.004)
    assert is_same == pytest.approx(0.1 + 0.1 / 995, abs=0.003)


def test_random_pieces_are_ordinary_ones_only():
    vocabulary = EVERY_PIECE_A_WORD._replace(ordinary_ids=np.array([7, 9], np.int32))
    ids, mask = sequences(500, 60, 60)
    ids[ids >= 5] = 500
    shown = masked(ids, mask, 18, vocabulary)["input_ids"]
    assert set(np.unique(shown)) == {CLS, SEP, MASK, 7, 9, 500}


def test_effective_lengths_are_those_of_the_simulation():
    """Spec 2.4: one-piece words, 125 of them, 19 hidden: 0.583, 0.264, 0.152."""
    vocabulary = EVERY_PIECE_A_WORD
    ids, mask = sequences(6000, 62, 63)
    found = masked(ids, mask, 19, vocabulary, masked_lm_prob=19 / 128)
    runs = np.zeros(4)
    for positions in found["masked_lm_positions"]:
        # Neighbouring n-grams cannot be told apart; count runs and compare with the same on
        # shuffled independent draws below.
        lengths = np.diff(np.flatnonzero(np.diff(np.r_[-9, positions, 999]) > 1))
        runs += np.bincount(np.minimum(lengths, 4) - 1, minlength=4)[:4]
    assert runs[0] > runs[1] > runs[2]
    assert runs[0] / runs.sum() == pytest.approx(_simulated_single_runs(), abs=0.015)


def _simulated_single_runs():
    """The sampling loop of the reference, word by word, for the case above."""
    rng = np.random.default_rng(1)
    single = total = 0
    for _ in range(2000):
        covered, left = np.zeros(125, bool), 19
        for word in rng.permutation(125):
            n = min(rng.choice(3, p=ngram_probabilities(3)) + 1, (62 if word < 62 else 125) - word)
            n = min(n, left)
            if n and not covered[word : word + n].any():
                covered[word : word + n], left = True, left - n
        places = np.flatnonzero(np.insert(covered, 62, False))
        lengths = np.diff(np.flatnonzero(np.diff(np.r_[-9, places, 999]) > 1))
        single, total = single + (lengths == 1).sum(), total + len(lengths)
    return single / total


def test_words_are_hidden_whole():
    starts = np.zeros(VOCAB, bool)
    starts[5::2] = True  # odd ids open a word, even ones continue it
    vocabulary = EVERY_PIECE_A_WORD._replace(starts_word=starts)
    ids, mask = sequences(1, 60, 60)
    ids[0, 1:61], ids[0, 62:122] = np.tile([5, 6, 8], 20), np.tile([7, 6], 30)
    ids = np.repeat(ids, 300, axis=0)
    found = masked(ids, np.repeat(mask, 300, axis=0), 18, vocabulary)
    for positions, weights in zip(
        found["masked_lm_positions"], found["masked_lm_weights"], strict=True
    ):
        hidden = np.zeros(ids.shape[1], bool)
        hidden[positions[weights > 0]] = True
        assert all(word.all() or not word.any() for word in hidden[1:61].reshape(20, 3))
        assert all(word.all() or not word.any() for word in hidden[62:122].reshape(30, 2))


def test_no_ngram_crosses_the_separator():
    ids, mask = sequences(4000, 2, 2)
    found = masked(ids, mask, 3, max_ngram=3, favor_shorter_ngram=False, masked_lm_prob=0.43)
    pairs = found["masked_lm_positions"][found["masked_lm_weights"].sum(axis=1) == 3]
    # Of three places one segment gives two and the other one; a trigram would need the border.
    assert {tuple(row) for row in pairs} == {(1, 2, 4), (1, 2, 5), (1, 4, 5), (2, 4, 5)}


def test_a_cut_off_word_that_opens_the_second_segment_is_a_word_of_its_own():
    starts = np.zeros(VOCAB, bool)
    starts[5] = True
    vocabulary = EVERY_PIECE_A_WORD._replace(starts_word=starts)
    ids = np.array([[CLS, 5, SEP, 6, SEP]], np.int32).repeat(400, axis=0)
    found = masked(ids, np.ones_like(ids), 1, vocabulary)
    assert set(found["masked_lm_positions"][:, 0]) == {1, 3}
    assert found["token_boundary"][0].tolist() == [1, 1, 1, 0, 1]


def test_without_masking_nothing_changes():
    ids, mask = sequences(5, 20, 20)
    found = masked(ids, mask, 6, masked_lm_prob=0)
    np.testing.assert_array_equal(found["input_ids"], ids)
    assert not found["masked_lm_weights"].any()


def test_masks_depend_on_the_key_alone_not_on_the_batch():
    ids, mask = sequences(40, 50, 30)
    whole, part = masked(ids, mask, 12), masked(ids[:7], mask[:7], 12)
    for name, values in part.items():
        np.testing.assert_array_equal(values, whole[name][:7])
    assert (masked(ids, mask, 12, seed=1)["input_ids"] != whole["input_ids"]).any()
