"""Loops compiled to machine code by numba, where neither NumPy nor Python is fast enough."""

import numba


def compiled(function):
    """Compiles a function at its first call; what was compiled is kept on disk where that works.

    The code runs without the interpreter's lock, so threads run it side by side.

    Args:
        function: callable on numbers and arrays, of whole numbers where results have to be the
            same on every machine.

    Returns:
        callable.
    """
    try:
        return numba.njit(function, cache=True, nogil=True)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written to
        return numba.njit(function, nogil=True)
