"""The learning rate as a function of the step: linear warm-up, then polynomial decay to 0."""

from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="albert_keras")
class WarmupPolynomialDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up to the peak learning rate, then polynomial decay to 0.

    With peak lr, T = `num_steps`, W = `warmup_steps`, s0 = `start_warmup_step`, p = `power`:

        s - s0 < W:  lr * max(s - s0, 0) / W
        otherwise:   lr * (1 - min(s, T) / T) ** p

    Decay counts from step 0 as in the reference, so that the rate drops by the factor 1 - W/T at
    the end of warm-up. The first update has rate 0.

    Args:
        learning_rate: float. Peak, lr.
        num_steps: int. Step from which the rate is 0, T.
        warmup_steps: int. Length of the warm-up, W; 0 for none.
        power: float. Exponent of the decay, p; 0 keeps the rate constant.
        start_warmup_step: int. Step where warm-up begins, s0. Before it the rate is 0; the
            reference's is negative there.
        decay_from_warmup_end: bool. Whether the decay starts from lr at step s0 + W, without the
            drop (a deviation from the reference).
        adjustable: bool. Whether `set_num_steps` may change T during training. T is then a
            variable, created in the scope of the current strategy, that compiled steps read.

    Call arguments:
        step: int or float scalar. Number of updates so far.

    Returns:
        float32 scalar. Rate of the next update.

    Raises:
        ValueError: If `num_steps` is not positive, a step is negative, or the run ends before
            the warm-up does.

    Source:
        `create_optimizer` in google-research/albert, `optimization.py`.
    """

    def __init__(
        self,
        learning_rate: float,
        num_steps: int,
        warmup_steps: int = 0,
        power: float = 1.0,
        start_warmup_step: int = 0,
        decay_from_warmup_end: bool = False,
        adjustable: bool = False,
    ):
        super().__init__()
        self.learning_rate = learning_rate
        self.num_steps = num_steps
        self.warmup_steps = warmup_steps
        self.power = power
        self.start_warmup_step = start_warmup_step
        self.decay_from_warmup_end = decay_from_warmup_end
        self.adjustable = adjustable
        self._check(num_steps)
        self._variable = None
        if adjustable:
            self._variable = tf.Variable(
                num_steps,
                trainable=False,
                dtype=tf.int64,
                name="num_steps",
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )

    @property
    def warmup_end(self):
        """int. First step after the warm-up, s0 + W; the minimum of `num_steps`."""
        return self.start_warmup_step + self.warmup_steps

    def set_num_steps(self, num_steps: int) -> None:
        """Changes T, effective from the next step, in compiled graphs too.

        Args:
            num_steps: int. Step from which the rate is 0.

        Raises:
            ValueError: If the schedule is not adjustable, or as on construction.
        """
        if self._variable is None:
            raise ValueError(
                "`num_steps` can change only in a schedule created with adjustable=True."
            )
        self._check(num_steps)
        self.num_steps = num_steps
        self._variable.assign(num_steps)

    def __call__(self, step):
        with tf.name_scope("WarmupPolynomialDecay"):
            if isinstance(step, int):
                step = tf.constant(step, tf.int64)
            step = tf.convert_to_tensor(step)
            # Subtract first, then divide: 1 - s/T in float32 would lose all digits near the end of
            # a run of a million steps.
            end, decay_steps = self._end_and_decay_steps(step.dtype)
            remaining = tf.cast(tf.maximum(end - step, 0), tf.float32) / decay_steps
            rate = self.learning_rate * tf.pow(remaining, self.power)
            if not self.warmup_steps:
                return rate
            warm = tf.cast(step - tf.constant(self.start_warmup_step, step.dtype), tf.float32)
            rising = self.learning_rate * tf.maximum(warm, 0.0) / self.warmup_steps
            return tf.where(warm < self.warmup_steps, rising, rate)

    def _end_and_decay_steps(self, dtype):
        """Returns T in the dtype of the step, and the number of steps of the decay."""
        start = self.warmup_end if self.decay_from_warmup_end else 0
        if self._variable is None:
            return tf.constant(self.num_steps, dtype), max(self.num_steps - start, 1)
        end = tf.convert_to_tensor(self._variable)
        return tf.cast(end, dtype), tf.cast(tf.maximum(end - start, 1), tf.float32)

    def _check(self, num_steps):
        if num_steps < 1 or min(self.warmup_steps, self.start_warmup_step) < 0:
            raise ValueError(
                "`num_steps` must be positive, `warmup_steps` and `start_warmup_step` not "
                f"negative. Received: num_steps={num_steps}, warmup_steps={self.warmup_steps}, "
                f"start_warmup_step={self.start_warmup_step}."
            )
        if self.warmup_end > num_steps:
            raise ValueError(
                "The warm-up must end within `num_steps`. Received: "
                f"warmup_steps={self.warmup_steps}, start_warmup_step={self.start_warmup_step}, "
                f"num_steps={num_steps}."
            )

    def get_config(self) -> dict[str, Any]:
        return {
            "learning_rate": self.learning_rate,
            "num_steps": self.num_steps,
            "warmup_steps": self.warmup_steps,
            "power": self.power,
            "start_warmup_step": self.start_warmup_step,
            "decay_from_warmup_end": self.decay_from_warmup_end,
            "adjustable": self.adjustable,
        }
