"""Keeps requests from taking all memory of a computer: neither too many texts, nor answers."""

import math

from albert_keras.serving.protocol.status import invalid


class BoundedRun:
    """Runs requests one by one; what `Servable` takes for `merge`.

    Args:
        run: function. Of (signature, names of outputs, dict of arrays) -> dict of arrays.
        limits: Limits.
    """

    def __init__(self, run, limits):
        self._run, self._limits = run, limits

    def run(self, name, wanted, tensors, timeout):
        """Returns the outputs, dict of alias -> array; StatusError beyond the limits.

        Args:
            name: str. Of the signature.
            wanted: tuple of str. Outputs.
            tensors: dict of alias -> array.
            timeout: float. Not used, as nothing waits here.
        """
        most = self._limits.rows
        for alias, array in tensors.items():
            rows = _rows(array)
            if rows > most:
                raise invalid(f"{alias} should hold at most {most} texts at once, got {rows}.")
        outputs = self._run(name, wanted, tensors)
        values, most = sum(array.size for array in outputs.values()), self._limits.answer_values
        if values > most:
            raise invalid(
                f"The answer would hold {values} values, more than {most}: send fewer texts at "
                "once, or shorter ones."
            )
        return outputs

    def close(self):
        """Nothing is left open."""


def _rows(array):
    """Returns how many texts an array is for; of numbers the last dimension is their pieces."""
    return array.size if array.dtype.kind in "OSU" else math.prod(array.shape[:-1])
