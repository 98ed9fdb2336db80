"""Random numbers as a function of what they are for.

Nothing here has a state. A number depends on a key (made of the seed, the copy, the document, the
record ...), on a stream (which decision) and on its place in the stream. So workers, batches and
the order of work cannot change a draw, and whole batches are drawn at once.

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
    """Makes a key from plain values, the same on every machine.

    Args:
        *parts: str or int values that name what is drawn for.

    Returns:
        np.uint64.
    """
    named = "\x1f".join(str(part) for part in parts).encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(named, digest_size=8).digest(), "little"))


def subkeys(key, indices):
    """Derives one key for each index.

    Args:
        key: np.uint64 scalar or [N].
        indices: int scalar or [N].

    Returns:
        np.uint64 [N].
    """
    with np.errstate(over="ignore"):
        return _mix(
            np.asarray(key) + (np.asarray(indices).astype(np.uint64) + np.uint64(1)) * _GOLDEN
        )


def bits(keys, stream, count):
    """Draws 64 random bits at a time.

    Args:
        keys: np.uint64 [N].
        stream: int. Tells independent decisions under one key apart.
        count: int. Draws per key.

    Returns:
        np.uint64 [N, count].
    """
    keys = _mix(np.atleast_1d(keys) + np.uint64((stream + 1) * int(_GOLDEN) % 2**64))
    steps = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    return _mix(keys[:, None] + steps)


def uniform(keys, stream, count):
    """Draws numbers from [0, 1), float64 [N, count]; arguments as in `bits`."""
    return (bits(keys, stream, count) >> np.uint64(11)) * 2.0**-53


def heads(keys, stream, coins):
    """Counts heads among fair coins.

    Args:
        keys: np.uint64 [N].
        stream: int.
        coins: int [N]. How many coins each key tosses.

    Returns:
        int64 [N]. Binomial(coins, 1/2).
    """
    coins = np.asarray(coins, np.int64)
    words = -(-int(coins.max(initial=0)) // 64)
    tosses = bits(keys, stream, words)
    left = coins[:, None] - np.arange(0, 64 * words, 64)  # coins of each word and those after it
    tosses &= _FIRST_COINS[np.clip(left, 0, 64)]
    return _ones(tosses).sum(axis=1)


def permute(positions, size, key):
    """Shuffles 0..size-1 without holding it: position in the shuffled order -> element.

    A Feistel network over the next even power of two, walked until it lands inside, so it is a
    bijection of any size and costs the same at any position.

    Args:
        positions: int [N]. Each in [0, size).
        size: int. Number of elements.
        key: np.uint64. Which order.

    Returns:
        int64 [N]. Distinct for distinct positions.
    """
    half = max(1, -(-max(1, int(size - 1).bit_length()) // 2))
    values = np.array(positions, np.uint64, ndmin=1)
    _permute(values, np.uint64(size), np.uint64(half), key)
    return values.astype(np.int64)


@compiled
def _permute(values, size, half, key):
    low = (np.uint64(1) << half) - np.uint64(1)
    for place in range(len(values)):
        value = values[place]
        inside = False
        while not inside:
            left, right = value >> half, value & low
            for step in range(6):
                drawn = draw_bits(key, right * np.uint64(8) + np.uint64(step))
                left, right = right, left ^ (drawn & low)
            value = (left << half) | right
            inside = value < size
        values[place] = value


@compiled
def draw_bits(key, place):
    """Draws 64 bits within compiled code: `subkeys(key, place)`, for uint64 or int `place`.

    With `subkeys(key, stream)` for a key, this is `bits(key, stream, count)[:, place]`.
    """
    value = key + (np.uint64(place) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _mix(values):
    """Scrambles a fresh array in place, or a scalar."""
    values = np.asarray(values)
    shifted = np.empty_like(values)
    for shift, factor in _ROUNDS:
        values ^= np.right_shift(values, shift, out=shifted)
        values *= factor
    values ^= np.right_shift(values, _LAST_SHIFT, out=shifted)
    return values[()]


def _ones(values):
    """Counts the ones of 64 bits: in pairs, in fours, in bytes, then all eight bytes at once."""
    values = values - ((values >> np.uint64(1)) & np.uint64(0x5555555555555555))
    fours = np.uint64(0x3333333333333333)
    values = (values & fours) + ((values >> np.uint64(2)) & fours)
    values = (values + (values >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((values * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


def _first_coins(count):
    """Bits that stand for the first coins: bytes from the lowest on, in each from the top down."""
    full, rest = divmod(count, 8)
    return (1 << 8 * full) - 1 | (0xFF << 8 - rest & 0xFF) << 8 * full


_FIRST_COINS = np.array([_first_coins(count) for count in range(65)], np.uint64)
