"""Loops compiled to machine code by numba, for which NumPy and Python are too slow."""

import numba


def compiled(function):
    """Compiles a function of numbers and arrays at its first call, and caches it on disk.

    The code releases the interpreter's lock, so that threads can run it in parallel. Results that
    must be the same on every machine need integers.
    """
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        return numba.njit(function, nogil=True)
