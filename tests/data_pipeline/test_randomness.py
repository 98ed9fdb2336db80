"""Random numbers depend on what they are for, and on nothing else."""

import numpy as np
import pytest

from data_pipeline.randomness import bits, heads, key_of, permute, subkeys, uniform

KEYS = subkeys(key_of("test"), np.arange(2000))


def test_a_key_is_the_same_on_every_machine():
    assert key_of(12345, "document", 0) == np.uint64(8844811623480552874)
    assert key_of(1, "2") != key_of(12, "")


def test_draws_do_not_depend_on_the_batch_they_are_made_in():
    whole = uniform(KEYS, 1, 5)
    np.testing.assert_array_equal(whole[7:9], uniform(KEYS[7:9], 1, 5))
    np.testing.assert_array_equal(whole[:, :3], uniform(KEYS, 1, 3))


def test_streams_and_keys_are_independent():
    draws = np.stack([uniform(KEYS, stream, 1)[:, 0] for stream in range(4)])
    assert np.abs(np.corrcoef(draws) - np.eye(4)).max() < 0.08


def test_draws_are_even_over_the_unit_interval():
    counts, _ = np.histogram(uniform(KEYS, 1, 50), bins=20, range=(0, 1))
    assert np.abs(counts / counts.mean() - 1).max() < 0.06
    assert (bits(KEYS, 1, 4) >> np.uint64(63)).mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("coins", [0, 1, 7, 64, 130])
def test_heads_are_binomial(coins):
    counts = heads(KEYS, 3, np.full(len(KEYS), coins))
    assert counts.min() >= 0 and counts.max() <= coins
    assert counts.mean() == pytest.approx(coins / 2, abs=0.15 * coins**0.5)
    assert counts.var() == pytest.approx(coins / 4, rel=0.12)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 1000, 4097])
def test_a_permutation_visits_each_element_once(size):
    order = permute(np.arange(size), size, key_of("order"))
    assert sorted(order) == list(range(size))


def test_permutations_differ_by_key_and_mix_well():
    first, second = (permute(np.arange(5000), 5000, key_of(seed)) for seed in (1, 2))
    assert (first == second).mean() < 0.01
    assert abs(np.corrcoef(np.arange(5000), first)[0, 1]) < 0.05


def test_any_position_of_a_huge_permutation_is_found_at_once():
    size = 10**12
    places = np.array([0, 10**8, size - 1])
    assert len(set(permute(places, size, key_of(1)).tolist())) == 3
