"""Random numbers depend on what they are for, and on nothing else."""

import numpy as np
import pytest

from data_pipeline.randomness import bits, heads, key_of, permute, subkeys, uniform

KEYS = subkeys(key_of("test"), np.arange(2000))


def test_draws_never_change_in_silence():
    keys = subkeys(key_of("golden"), np.arange(2))
    assert keys.tolist() == [7318158712912212689, 17641946081970484913]
    assert subkeys(keys[0], 5) == 18391644818555785164
    assert bits(keys, 1, 2).tolist() == [
        [16864328384191017869, 18018852813496882395],
        [10058998878179495315, 14453103915565598830],
    ]
    assert uniform(keys, 3, 1).tolist() == [[0.08367374428306795], [0.22765239589179997]]
    assert heads(keys, 2, [129, 13]).tolist() == [60, 8]
    assert permute([0, 1, 2, 3], 10, keys[0]).tolist() == [7, 0, 8, 2]


def test_draws_do_not_depend_on_the_batch_they_are_made_in():
    whole = uniform(KEYS, 1, 5)
    np.testing.assert_array_equal(whole[7:9], uniform(KEYS[7:9], 1, 5))
    np.testing.assert_array_equal(whole[:, :3], uniform(KEYS, 1, 3))


@pytest.mark.parametrize("size", [1, 2, 3, 17, 1000, 4097])
def test_a_permutation_visits_each_element_once(size):
    order = permute(np.arange(size), size, key_of("order"))
    assert sorted(order) == list(range(size))
