"""Buckets of tokens, and limits that cannot be."""

import pytest

from albert_keras.serving.local.limits import Limits, TokenBuckets
from data_pipeline.errors import InputError


def test_a_bucket_empties_and_fills_again():
    now = [0.0]
    buckets = TokenBuckets(per_second=2.0, burst=3, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b") == 0
    now[0] = 0.25
    assert buckets.take("a") == 0.25
    now[0] = 0.5
    assert [buckets.take("a") for _ in range(2)] == [0, 0.5]
    now[0] = 100.0
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0.5]


def test_buckets_of_many_addresses_are_not_kept():
    buckets = TokenBuckets(per_second=1.0, burst=1, clock=lambda: 0.0, addresses=2)
    for address in "abc":
        assert buckets.take(address) == 0
    assert buckets.take("c") == 1  # remembered
    assert buckets.take("a") == 0  # forgotten


@pytest.mark.parametrize(
    "wrong", [{"burst": 0}, {"rows": -1}, {"requests_per_second": float("inf")}]
)
def test_limits_are_positive(wrong):
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must be positive"):
        Limits(**wrong).check()
