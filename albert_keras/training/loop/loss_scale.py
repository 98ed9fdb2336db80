"""Loss scaling: lifts the gradients of float16 out of the range where they become 0."""

import tensorflow as tf

from albert_keras.training.loop.guard import state_variable

_INITIAL_SCALE = 2.0**15
#: Updates without an overflow after which the scale is doubled.
_GROWTH_STEPS = 2000


class LossScale:
    """A factor for the loss, halved when gradients overflow and doubled when they long did not.

    Make it in the scope of the strategy.

    Source:
        Micikevicius et al.: Mixed precision training, section 3.2
        (https://arxiv.org/abs/1710.03740); the numbers are Keras' `LossScaleOptimizer`'s.
    """

    def __init__(self):
        self._scale = state_variable(_INITIAL_SCALE, tf.float32, "loss_scale")
        self._good_steps = state_variable(0, tf.int64, "good_steps")

    def value(self):
        """Returns the factor, float32 scalar."""
        return tf.convert_to_tensor(self._scale)

    def update(self, is_finite):
        """Adapts the factor after a step; `is_finite` tells whether its gradients were."""
        good_steps = tf.where(is_finite, self._good_steps + 1, 0)
        grows = good_steps >= _GROWTH_STEPS
        kept = tf.where(grows, 2.0 * self._scale, tf.convert_to_tensor(self._scale))
        self._scale.assign(tf.where(is_finite, kept, tf.maximum(self._scale / 2.0, 1.0)))
        self._good_steps.assign(tf.where(grows, tf.zeros_like(good_steps), good_steps))

    def variables(self):
        """Returns what a checkpoint has to keep: dict of name -> variable."""
        return {"training/loss_scale": self._scale, "training/good_steps": self._good_steps}
