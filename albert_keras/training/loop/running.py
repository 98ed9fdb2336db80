"""Means and sums over the steps since the last report."""

import tensorflow as tf

from albert_keras.training.loop.guard import state_variable


class Running:
    """A mean or a sum that grows with each step; make it in the scope of the strategy.

    Unlike a Keras metric it is given values that are summed over the replicas already, so that
    neither reading nor saving it makes them talk to each other.

    Args:
        name: str.
        sums: bool. Whether the result is the sum; else it is the mean.
    """

    def __init__(self, name, sums=False):
        self.name, self.sums = name, sums
        self._total = state_variable(0.0, tf.float32, f"{name}_total")
        self._count = None if sums else state_variable(0.0, tf.float32, f"{name}_count")

    def add(self, value, is_usable=True, count=1.0):
        """Adds what a step gave.

        Args:
            value: float32 scalar. For a mean, the sum over `count` things.
            is_usable: bool scalar. False leaves it out.
            count: float32 scalar.
        """
        self._total.assign_add(tf.where(is_usable, value, 0.0))
        if self._count is not None:
            self._count.assign_add(tf.where(is_usable, count, 0.0))

    def result(self):
        """Returns the mean or the sum, float32 scalar; 0 if there was nothing."""
        if self._count is None:
            return tf.convert_to_tensor(self._total)
        return tf.math.divide_no_nan(self._total, self._count)

    def reset(self):
        """Begins anew."""
        for variable in self.variables().values():
            variable.assign(0.0)

    def variables(self):
        """Returns what a checkpoint has to keep: dict of name -> variable."""
        variables = {f"training/{self.name}/total": self._total}
        if self._count is not None:
            variables[f"training/{self.name}/count"] = self._count
        return variables
