"""What a training step keeps besides weights and moments: update guard, loss scale, running means.

Create these objects in the scope of the strategy. As attributes of a model they are a part of its
`tf.train.Checkpoint`, but not of its weights.
"""

import tensorflow as tf

#: Number of recent losses, and of standard deviations above their mean that make a spike.
#: OLMo-core's SkipStep optimizers use the same two numbers.
SPIKE_WINDOW, SPIKE_DEVIATIONS = 128, 6.0

_Tracked = tf.__internal__.tracking.AutoTrackable

_INITIAL_SCALE = 2.0**15
#: Updates without an overflow after which the loss scale is doubled.
_GROWTH_STEPS = 2000


def _state_variable(value, dtype, name):
    """Creates a variable with an equal copy on each replica.

    Assigned values must be summed over the replicas before; then assigning needs no communication,
    and saving and restoring see a single value.
    """
    return tf.Variable(
        value,
        trainable=False,
        dtype=dtype,
        name=name,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


class Running(_Tracked):
    """A mean, or with `sums` a sum, over the steps since the last report.

    Unlike a Keras metric it receives values that are already summed over the replicas, so that
    neither reading nor saving it needs communication.
    """

    def __init__(self, name, sums=False):
        self.name, self.sums = name, sums
        self._total = _state_variable(0.0, tf.float32, f"{name}_total")
        self._count = None if sums else _state_variable(0.0, tf.float32, f"{name}_count")

    def add(self, value, is_usable=True, count=1.0):
        """Adds a value (float32 scalar) unless it is not usable; for a mean a sum over `count`."""
        self._total.assign_add(tf.where(is_usable, value, 0.0))
        if self._count is not None:
            self._count.assign_add(tf.where(is_usable, count, 0.0))

    def result(self):
        """Returns the mean or the sum, float32 scalar; 0 if nothing was added."""
        if self._count is None:
            return tf.convert_to_tensor(self._total)
        return tf.math.divide_no_nan(self._total, self._count)

    def reset(self):
        """Sets the mean or sum back to 0."""
        for variable in self.variables().values():
            variable.assign(0.0)

    def variables(self):
        """Returns what a checkpoint saves: dict of name -> variable."""
        variables = {f"training/{self.name}/total": self._total}
        if self._count is not None:
            variables[f"training/{self.name}/count"] = self._count
        return variables


class UpdateGuard(_Tracked):
    """Decides, within the graph, whether a step may change the weights.

    Args:
        skip_spikes: bool. Whether to skip updates whose loss exceeds the mean of the last 128 by
            more than six standard deviations. Losses that are not finite are always skipped.

    Attributes:
        consecutive_skips: float32 variable. Updates skipped since the last one that was made.
    """

    def __init__(self, skip_spikes=False):
        self.skip_spikes = skip_spikes
        self.consecutive_skips = _state_variable(0.0, tf.float32, "skipped_in_row")
        if skip_spikes:
            self._losses = _state_variable(tf.zeros(SPIKE_WINDOW), tf.float32, "losses")
            self._num_losses = _state_variable(0, tf.int64, "num_losses")

    def decide(self, loss, gradient_norm):
        """Returns whether the update may be made (bool scalar Tensor), and counts skipped updates.

        Args:
            loss: float32 scalar. Loss of the whole batch, the same on all replicas.
            gradient_norm: float32 scalar. Norm for the whole batch, the same on all replicas; not
                finite if any gradient is not.
        """
        is_finite = tf.math.is_finite(loss) & tf.math.is_finite(gradient_norm)
        is_usable = is_finite & ~self._is_spike(loss, is_finite) if self.skip_spikes else is_finite
        self.consecutive_skips.assign(tf.where(is_usable, 0.0, self.consecutive_skips + 1.0))
        return is_usable

    def variables(self):
        """Returns what a checkpoint saves: dict of name -> variable."""
        variables = {"training/skipped_in_row": self.consecutive_skips}
        if self.skip_spikes:
            variables["training/losses"] = self._losses
            variables["training/num_losses"] = self._num_losses
        return variables

    def _is_spike(self, loss, is_finite):
        threshold = tf.reduce_mean(self._losses) + SPIKE_DEVIATIONS * tf.math.reduce_std(
            self._losses
        )
        is_spike = (self._num_losses >= SPIKE_WINDOW) & (loss > threshold)
        # A spike is added to the recent losses: losses that stay high become normal.
        oldest = tf.math.floormod(self._num_losses, SPIKE_WINDOW)
        is_oldest = tf.range(SPIKE_WINDOW, dtype=tf.int64) == oldest
        self._losses.assign(tf.where(is_oldest & is_finite, loss, self._losses))
        self._num_losses.assign_add(tf.cast(is_finite, tf.int64))
        return is_spike


class LossScale(_Tracked):
    """A factor that lifts float16 gradients out of the range where they become 0.

    It is halved when gradients overflow and doubled after 2000 steps without an overflow.

    Source:
        Micikevicius et al.: Mixed precision training, section 3.2
        (https://arxiv.org/abs/1710.03740); the constants are the same as in
        Keras' `LossScaleOptimizer`.
    """

    def __init__(self):
        self._scale = _state_variable(_INITIAL_SCALE, tf.float32, "loss_scale")
        self._good_steps = _state_variable(0, tf.int64, "good_steps")

    def value(self):
        """Returns the factor, float32 scalar."""
        return tf.convert_to_tensor(self._scale)

    def update(self, is_finite):
        """Adapts the factor after a step; `is_finite` says whether its gradients were finite."""
        good_steps = tf.where(is_finite, self._good_steps + 1, 0)
        grows = good_steps >= _GROWTH_STEPS
        larger = tf.where(grows, 2.0 * self._scale, tf.convert_to_tensor(self._scale))
        self._scale.assign(tf.where(is_finite, larger, tf.maximum(self._scale / 2.0, 1.0)))
        self._good_steps.assign(tf.where(grows, tf.zeros_like(good_steps), good_steps))

    def variables(self):
        """Returns what a checkpoint saves: dict of name -> variable."""
        return {"training/loss_scale": self._scale, "training/good_steps": self._good_steps}
