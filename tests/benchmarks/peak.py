"""Measures how fast this machine multiplies matrices, which speeds are compared with."""

import time

import tensorflow as tf

_SIZES = (256, 512, 1024, 2048, 4096)
#: Products per measurement, so that waiting for the result counts little on a fast device.
_PRODUCTS = 4
#: Measurements of each size: other programs may disturb one.
_MEASUREMENTS = 3


def measure_peak(dtype: str, seconds: float = 1.5) -> float:
    """Measures the product of two square matrices on the default device, GPU or CPU.

    Sizes double from 256 to 4096 as far as the time allows; the fastest measurement counts.

    Args:
        dtype: "float32" or "bfloat16".
        seconds: Approximate duration.

    Returns:
        Operations per second of one device, a multiply-add counting 2.
    """
    best = _rate(_SIZES[0], dtype)  # also starts the device's libraries, which may take a while
    end = time.perf_counter() + seconds
    for size in _SIZES:
        expected = _MEASUREMENTS * (1 + _PRODUCTS) * 2 * size**3 / best
        if expected > end - time.perf_counter():
            break
        best = max(best, *(_rate(size, dtype) for _ in range(_MEASUREMENTS)))
    return best


def _rate(size, dtype):
    # A separate seed: the random numbers of the run are not changed.
    matrix = tf.cast(tf.random.stateless_normal([size, size], seed=[0, 0]), dtype)
    _seconds_of(matrix, 1)
    return _PRODUCTS * 2 * size**3 / _seconds_of(matrix, _PRODUCTS)


def _seconds_of(matrix, products):
    started = time.perf_counter()
    for _ in range(products):
        product = tf.matmul(matrix, matrix)
    product[0, 0].numpy()  # waits for the device
    return time.perf_counter() - started
