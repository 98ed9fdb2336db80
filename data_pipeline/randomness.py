"""Stateless random numbers: each value is a function of a key, a stream and an index.

A key is derived from what the number is for (the seed, the copy, the document, the record ...), a
stream separates the decisions made under one key. The results therefore do not depend on the number
of workers, on the batch size or on the order of the work, and whole batches are sampled at once.

The mixing function is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
generators, 2014).
"""

import hashlib

import numpy as np

from data_pipeline.compiled import compiled

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_LAST_SHIFT = np.uint64(31)


def key_of(*parts):
    """Derives a key (np.uint64) from str and int values, the same on every machine."""
    name = "\x1f".join(str(part) for part in parts).encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little"))


def subkeys(key, indices):
    """Derives one key for each index, np.uint64 of the broadcast shape.

    Args:
        key: np.uint64 scalar or array.
        indices: int scalar or array that broadcasts with `key`.
    """
    with np.errstate(over="ignore"):
        values = np.asarray(
            np.asarray(key) + (np.asarray(indices).astype(np.uint64) + np.uint64(1)) * _GOLDEN
        )
    shifted = np.empty_like(values)
    for shift, factor in _ROUNDS:
        values ^= np.right_shift(values, shift, out=shifted)
        values *= factor
    values ^= np.right_shift(values, _LAST_SHIFT, out=shifted)
    return values[()]


def bits(keys, stream, count):
    """Samples words of 64 random bits, np.uint64 [N, count].

    Args:
        keys: np.uint64 [N].
        stream: int. Separates independent decisions under one key.
        count: int. Words per key.
    """
    return subkeys(subkeys(np.atleast_1d(keys), stream)[:, None], np.arange(count))


def uniform(keys, stream, count):
    """Samples numbers from [0, 1), float64 [N, count]; the arguments are those of `bits`."""
    return (bits(keys, stream, count) >> np.uint64(11)) * 2.0**-53


def heads(keys, stream, coins):
    """Tosses fair coins and counts the heads: Binomial(coins, 1/2), int64 [N].

    Args:
        keys: np.uint64 [N].
        stream: int.
        coins: int [N]. Number of coins to toss for each key.
    """
    return _heads(subkeys(np.atleast_1d(keys), stream), np.asarray(coins, np.int64))


def permute(positions, size, key):
    """Maps positions of a shuffled order of 0..size-1 to elements, without storing the order.

    A Feistel network over the next even power of two is applied until the value is below `size`.
    That is a bijection for any size, and its cost does not depend on the position.

    Args:
        positions: int [N]. Each in [0, size).
        size: int. Number of elements.
        key: np.uint64. Selects the order.

    Returns int64 [N], distinct for distinct positions.
    """
    half = max(1, -(-max(1, int(size - 1).bit_length()) // 2))
    values = np.array(positions, np.uint64, ndmin=1)
    _permute(values, np.uint64(size), np.uint64(half), key)
    return values.astype(np.int64)


@compiled
def random_bits(key, index):
    """Returns 64 random bits within compiled code: `subkeys(key, index)` of scalars.

    `bits(key, stream, count)[0, index]` is `random_bits(random_bits(key, stream), index)`.
    """
    value = key + (np.uint64(index) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled
def _heads(keys, coins):
    counts = np.zeros(len(keys), np.int64)
    for row in range(len(keys)):
        word = np.uint64(0)
        for coin in range(coins[row]):
            if coin % 64 == 0:
                word = random_bits(keys[row], coin // 64)
            # Coins are the bits of a word as NumPy unpacks them: each byte from its highest bit.
            shift = np.uint64(coin % 64 // 8 * 8 + 7 - coin % 8)
            counts[row] += np.int64((word >> shift) & np.uint64(1))
    return counts


@compiled
def _permute(values, size, half, key):
    low = (np.uint64(1) << half) - np.uint64(1)
    for index in range(len(values)):
        value = values[index]
        inside = False
        while not inside:
            left, right = value >> half, value & low
            for step in range(6):
                mixed = random_bits(key, right * np.uint64(8) + np.uint64(step))
                left, right = right, left ^ (mixed & low)
            value = (left << half) | right
            inside = value < size
        values[index] = value
