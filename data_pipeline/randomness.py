"""Stateless random numbers: each value is a function of a key, a stream and an index.

A key is derived from what the number is for (the seed, the copy, the document, the record ...), a
stream separates the decisions made under one key. The results therefore do not depend on the number
of workers, on the batch size or on the order of the work, and whole batches are sampled at once.

The mixing function is SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
generators, 2014).
"""

import hashlib

import numba
import numpy as np


def compiled(function):
    """Compiles a function of numbers and arrays at its first call, and caches it on disk.

    The code releases the interpreter's lock, so that threads can run it in parallel. Results that
    must be the same on every machine need integers.
    """
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        return numba.njit(function, nogil=True)


def key_of(*parts: str | int) -> np.uint64:
    """Derives a key from values, the same on every machine."""
    name = "\x1f".join(str(part) for part in parts).encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little"))


def _mixed(key, index):
    value = key + (np.uint64(index) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


#: `subkeys` of scalars for compiled code: `random_bits(random_bits(key, stream), index)` is
#: `bits(key, stream, count)[0, index]`.
random_bits = compiled(_mixed)


def subkeys(key, indices):
    """Derives one key (np.uint64) for each index; both may be scalars or arrays of ints."""
    with np.errstate(over="ignore"):
        return _mixed(np.asarray(key), np.asarray(indices))


def bits(keys: np.ndarray, stream: int, count: int) -> np.ndarray:
    """Samples `count` words of 64 random bits for each of N keys, np.uint64 [N, count]."""
    return subkeys(subkeys(np.atleast_1d(keys), stream)[:, None], np.arange(count))


def uniform(keys: np.ndarray, stream: int, count: int) -> np.ndarray:
    """Samples `count` numbers from [0, 1) for each of N keys, float64 [N, count]."""
    return (bits(keys, stream, count) >> np.uint64(11)) * 2.0**-53


def heads(keys: np.ndarray, stream: int, coins: np.ndarray) -> np.ndarray:
    """Tosses `coins` (int [N]) fair coins for N keys and counts the heads, int64 [N]."""
    return _heads(subkeys(np.atleast_1d(keys), stream), np.asarray(coins, np.int64))


def permute(positions, size: int, key: np.uint64) -> np.ndarray:
    """Maps positions (int [N]) of a shuffled order of 0..size-1 to its elements, int64 [N].

    The order, which depends on the key, is not stored. A Feistel network over the next even power
    of two is applied until the value is below `size`. That is a bijection for any size, and its
    cost does not depend on the position.
    """
    half = max(1, -(-max(1, int(size - 1).bit_length()) // 2))
    values = np.array(positions, np.uint64, ndmin=1)
    _permute(values, np.uint64(size), np.uint64(half), key)
    return values.astype(np.int64)


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
