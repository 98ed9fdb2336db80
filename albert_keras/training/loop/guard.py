"""Which updates are made: none from a loss or gradient that is not finite, or far out of line."""

import tensorflow as tf

#: Losses that tell what is usual, and by how many standard deviations one has to stand out.
#: OLMo-core's SkipStep optimizers use the same two numbers.
SPIKE_WINDOW, SPIKE_DEVIATIONS = 128, 6.0


def state_variable(value, dtype, name):
    """Makes a variable that each replica keeps for itself, all of them the same.

    What is assigned has to be summed over the replicas before; then assigning costs nothing, and
    saving and restoring see a single value.

    Args:
        value: Initial value.
        dtype: tf.DType.
        name: str.

    Returns:
        tf.Variable, not trainable.
    """
    return tf.Variable(
        value,
        trainable=False,
        dtype=dtype,
        name=name,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


class UpdateGuard:
    """Decides, within the graph, whether a step may change the weights; make it in the scope.

    Args:
        skip_spikes: bool. Whether to leave out updates whose loss exceeds the mean of the last 128
            by more than six standard deviations.

    Attributes:
        skipped_in_row: float32 variable. Updates left out since the last one that was made.
    """

    def __init__(self, skip_spikes=False):
        self.skip_spikes = skip_spikes
        self.skipped_in_row = state_variable(0.0, tf.float32, "skipped_in_row")
        if skip_spikes:
            self._losses = state_variable(tf.zeros(SPIKE_WINDOW), tf.float32, "losses")
            self._num_losses = state_variable(0, tf.int64, "num_losses")

    def decide(self, loss, gradient_norm):
        """Tells whether the update may be made, and counts.

        Args:
            loss: float32 scalar. Of the whole batch, the same on all replicas.
            gradient_norm: float32 scalar. Likewise; not finite if any gradient is not.

        Returns:
            bool scalar Tensor.
        """
        is_finite = tf.math.is_finite(loss) & tf.math.is_finite(gradient_norm)
        is_usable = is_finite & ~self._is_spike(loss, is_finite) if self.skip_spikes else is_finite
        self.skipped_in_row.assign(tf.where(is_usable, 0.0, self.skipped_in_row + 1.0))
        return is_usable

    def variables(self):
        """Returns what a checkpoint has to keep: dict of name -> variable."""
        variables = {"training/skipped_in_row": self.skipped_in_row}
        if self.skip_spikes:
            variables["training/losses"] = self._losses
            variables["training/num_losses"] = self._num_losses
        return variables

    def _is_spike(self, loss, is_finite):
        mean, deviation = (
            tf.reduce_mean(self._losses),
            tf.math.reduce_std(self._losses),
        )
        is_spike = (self._num_losses >= SPIKE_WINDOW) & (loss > mean + SPIKE_DEVIATIONS * deviation)
        # A spike joins the others: when losses stay high, they become what is usual.
        place = tf.math.floormod(self._num_losses, SPIKE_WINDOW)
        is_place = tf.range(SPIKE_WINDOW, dtype=tf.int64) == place
        self._losses.assign(tf.where(is_place & is_finite, loss, self._losses))
        self._num_losses.assign_add(tf.cast(is_finite, tf.int64))
        return is_spike
