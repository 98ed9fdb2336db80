"""Measures how fast this machine multiplies matrices, the peak for the utilisation (MFU)."""

import contextlib
import time

import tensorflow as tf

_SMALLEST, _LARGEST = 256, 4096
#: Products per measurement, so that waiting for the result counts little on a fast device.
_PRODUCTS = 4


def measure_peak(dtype: str, seconds: float = 0.5, on_cpu: bool = False) -> float | None:
    """Measures the product of two square matrices on the default device, GPU or CPU.

    Sizes double from 256 to 4096 as far as the time allows; the fastest measurement counts. No
    product reaches the peak of the data sheet, so the utilisation is higher relative to this one.

    Args:
        dtype: The precision of a run, or "bfloat16", "float16". On a CPU float16 is measured as
            float32: it has no such product.
        seconds: Approximate duration.
        on_cpu: Whether the CPU is measured even if there is a GPU or a TPU.

    Returns:
        Operations per second of one device, a multiply-add counting 2; None for a TPU, on which
        nothing is run.

    Source:
        Model FLOPs utilisation: PaLM, section 4.1 (https://arxiv.org/abs/2204.02311).
    """
    kinds = () if on_cpu else ("TPU", "GPU")
    kind = next((kind for kind in kinds if tf.config.list_logical_devices(kind)), "CPU")
    if kind == "TPU":
        return None
    dtype = tf.as_dtype(dtype.removeprefix("mixed_"))
    if dtype == tf.float16 and kind == "CPU":
        dtype = tf.float32
    with tf.device("/CPU:0") if on_cpu else contextlib.nullcontext():
        return _fastest_rate(dtype, seconds)


def _fastest_rate(dtype, seconds):
    size = _SMALLEST
    best = _rate(size, dtype)  # also starts the device's libraries, which may take a while
    end = time.perf_counter() + seconds
    while (left := end - time.perf_counter()) > _expected_seconds(size, best):
        # Other programs may disturb one measurement, so there must be time for several.
        if size < _LARGEST and 3 * _expected_seconds(2 * size, best) < left:
            size *= 2
        best = max(best, _rate(size, dtype))
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


def _expected_seconds(size, rate):
    return (1 + _PRODUCTS) * 2 * size**3 / rate
