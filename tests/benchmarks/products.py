"""The fastest matrix product of any library on this machine: the peak to compare with."""

import importlib.util
import logging
import time
from collections.abc import Sequence

from data_pipeline.building.workers import num_processors
from tests.benchmarks.measure import in_new_process
from tests.benchmarks.shapes import Shape

logger = logging.getLogger(__name__)

#: Sizes of square products, which are measured besides the products of the shapes.
_SQUARES = (1024, 2048)
#: Products per measurement, so that waiting for the result matters little.
_PRODUCTS = 4


def measure_products(shapes: Sequence[Shape], dtypes: Sequence[str], seconds=1.5) -> dict:
    """Measures matrix products with TensorFlow and, if it is installed, PyTorch.

    The products are square ones and the products of a block on a batch: B·S × H × 3·H (query, key
    and value in one), H × 4·H, 4·H × H. Each library runs in its own process, and takes about
    `seconds` for each dtype.

    Returns:
        dict of dtype to dict. `flops`, operations per second of the fastest product, counting 2 for
        a multiply-add (float), and `by`, which one it was (str).
    """
    sizes = _sizes(shapes)
    libraries = {"TensorFlow": _tensorflow_rates}
    if importlib.util.find_spec("torch"):
        libraries["PyTorch"] = _pytorch_rates
    found = {}
    for library, measure in libraries.items():
        logger.info("measuring matrix products of %s", library)
        rates, _ = in_new_process(measure, sizes, tuple(dtypes), seconds)
        peaks = {
            dtype: {"flops": flops, "by": f"{library}, {name}"}
            for dtype, (flops, name) in rates.items()
        }
        found = higher(found, peaks)
    return found


def higher(one: dict, other: dict) -> dict:
    """Returns the higher figure of each dtype from two results of `measure_products`."""
    dtypes = {**one, **other}
    both = {dtype: [found[dtype] for found in (one, other) if dtype in found] for dtype in dtypes}
    return {dtype: max(found, key=lambda peak: peak["flops"]) for dtype, found in both.items()}


def _sizes(shapes: Sequence[Shape]) -> list[tuple[int, int, int]]:
    """Returns the products to measure, [M, K] × [K, N], each once, as (M, K, N)."""
    sizes = [(size, size, size) for size in _SQUARES]
    for shape in shapes:
        hidden, wide = shape.config.hidden_size, shape.config.intermediate_size
        ends = (hidden, 3 * hidden), (hidden, wide), (wide, hidden)
        sizes += [(shape.tokens, *inner) for inner in ends]
    return list(dict.fromkeys(sizes))


def _tensorflow_rates(sizes, dtypes, seconds):
    import tensorflow as tf

    from albert_keras.training.cost.peak import measure_peak

    def make(dtype, size):
        left, right = (
            tf.cast(tf.random.stateless_normal(ends, seed=[0, 0]), dtype)
            for ends in (size[:2], size[1:])
        )

        def multiply():
            for _ in range(_PRODUCTS):
                product = tf.matmul(left, right)
            product[0, 0].numpy()  # waits for the device

        return multiply

    rates = {}
    for dtype in dtypes:
        square = measure_peak(dtype, seconds / 2), "square"
        rates[dtype] = max(square, _best(make, dtype, sizes, seconds / 2))
    return rates


def _pytorch_rates(sizes, dtypes, seconds):
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(num_processors())

    def make(dtype, size):
        left, right = (
            torch.randn(ends, device=device).to(getattr(torch, dtype))
            for ends in (size[:2], size[1:])
        )

        def multiply():
            for _ in range(_PRODUCTS):
                product = left @ right
            product[0, 0].item()

        return multiply

    with torch.inference_mode():
        return {dtype: _best(make, dtype, sizes, seconds) for dtype in dtypes}


def _best(make, dtype, sizes, seconds) -> tuple[float, str]:
    """Measures all sizes repeatedly: operations per second and name of the fastest product."""
    products = [(size, make(dtype, size)) for size in sizes]
    for _, multiply in products:
        multiply()  # warms up, which may take long
    best, end, is_first = (0.0, ""), time.perf_counter() + seconds, True
    while is_first or time.perf_counter() < end:
        for (rows, inner, columns), multiply in products:
            started = time.perf_counter()
            multiply()
            taken = time.perf_counter() - started
            flops = _PRODUCTS * 2 * rows * inner * columns / taken
            best = max(best, (flops, f"{rows} × {inner} × {columns}"))
        is_first = False
    return best
