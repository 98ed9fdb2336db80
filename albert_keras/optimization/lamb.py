"""LAMB and AdamW as in google-research/albert, as optimizers of Keras."""

import re
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from albert_keras.layers.kernels import kernel
from albert_keras.optimization.base import Optimizer

#: Patterns of the weights that google-research/albert neither decays nor, with LAMB, rescales.
EXCLUDED = ("LayerNorm", "layer_norm", "bias")


@keras.saving.register_keras_serializable(package="albert_keras")
class Lamb(Optimizer):
    """LAMB without bias correction, one trust ratio per variable.

    For weights w with gradient g, at learning rate lr:

        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g ** 2
        u = m / (sqrt(v) + epsilon) + weight_decay * w
        r = norm(w) / norm(u), or 1 if either is 0
        w = w - r * lr * u

    A variable that is used several times (the shared blocks of ALBERT) has one summed gradient and
    one ratio. Sparse gradients have the same effect as dense ones: moments and decay change in all
    rows. If a gradient or its square is not finite, weight and moments stay bit for bit the same;
    a training step that must not change any weight makes all gradients NaN.

    Args:
        learning_rate: float or LearningRateSchedule.
        beta_1: float. Decay rate of the first moment.
        beta_2: float. Decay rate of the second moment.
        epsilon: float. Added outside the root.
        weight_decay: float or None. Decoupled weight decay; None is 0.
        exclude_from_weight_decay: list of str. Regular expressions. Variables whose name (without
            ":0") contains a match do not decay. The default is the reference's.
        exclude_from_layer_adaptation: list of str. The same for the trust ratio, which is then 1.
            None or empty uses `exclude_from_weight_decay`.
        global_clipnorm: float or None. Largest global norm of the gradients, summed over the
            replicas; None does not clip, nor does the default if `clipnorm` or `clipvalue` is
            given.
        name: str. Name of the optimizer.
        **kwargs: Of `keras.optimizers.Optimizer`.

    Example:
        schedule = WarmupPolynomialDecay(1.76e-3, num_steps=125_000, warmup_steps=3_125)
        model.compile(Lamb(schedule), loss="mse")

    Source:
        google-research/albert, `lamb_optimizer.py`. tensorflow-addons divides the moments by
        1 - beta ** t as the LAMB paper does (https://arxiv.org/abs/1904.00962); the reference and
        this class do not.
    """

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        weight_decay: float | None = 0.01,
        exclude_from_weight_decay: Sequence[str] | None = EXCLUDED,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        global_clipnorm: float | None = 1.0,
        name: str = "Lamb",
        **kwargs: Any,
    ):
        clips = any(kwargs.get(name) is not None for name in ("clipnorm", "clipvalue"))
        if clips and global_clipnorm == 1.0:
            global_clipnorm = None
        super().__init__(
            learning_rate,
            name,
            weight_decay=weight_decay or 0.0,
            global_clipnorm=global_clipnorm,
            **kwargs,
        )
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon
        self._not_decayed = list(exclude_from_weight_decay or ())
        self._not_adapted = list(exclude_from_layer_adaptation or ()) or self._not_decayed

    def moment_names(self, variable: tf.Variable) -> tuple[str, ...]:
        """Returns the names of the moments that are kept for a variable."""
        return ("m", "v")

    def update_step(self, gradient: Any, variable: tf.Variable, learning_rate: Any) -> None:
        """Updates a variable and its moments."""
        gradient, weight = tf.convert_to_tensor(gradient), tf.convert_to_tensor(variable)
        m, v = self.moments_of(variable).values()
        # A selection instead of a branch: it compiles for TPUs, and replicas cannot diverge.
        is_usable = tf.math.is_finite(tf.nn.l2_loss(gradient))
        # 1 - beta is computed in Python: in float32, 1 - 0.999 has a relative error of 1.3e-5.
        rates = [self.beta_1, 1 - self.beta_1, self.beta_2, 1 - self.beta_2, self.epsilon]
        decay = self.weight_decay if self._is_decayed(variable) else 0.0
        new_m, new_v, update = _moments(
            is_usable, gradient, m, v, weight, tf.constant([*rates, decay], variable.dtype)
        )
        ratio = self._trust_ratio(weight, update) if self._is_adapted(variable) else 1.0
        rate = tf.cast(learning_rate, variable.dtype)
        new = updated(is_usable, weight, update, ratio * rate)
        for old, value in ((m, new_m), (v, new_v), (variable, new)):
            old.assign(value)

    @staticmethod
    def _trust_ratio(var, update):
        # `l2_loss` is half the sum of squares, a fast reduction on CPUs; the halves cancel out.
        weight_norm, update_norm = (tf.sqrt(tf.nn.l2_loss(tensor)) for tensor in (var, update))
        has_both = (weight_norm > 0) & (update_norm > 0)
        return tf.where(has_both, tf.math.divide_no_nan(weight_norm, update_norm), 1.0)

    def _is_decayed(self, variable):
        is_excluded = self._is_named_by(self._not_decayed, variable)
        return self._use_weight_decay(variable) and not is_excluded

    def _is_adapted(self, variable):
        return not self._is_named_by(self._not_adapted, variable)

    def _is_named_by(self, patterns, variable):
        name = self.name_of(variable)
        return any(re.search(pattern, name) for pattern in patterns)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "exclude_from_weight_decay": self._not_decayed,
            "exclude_from_layer_adaptation": self._not_adapted,
        }


@keras.saving.register_keras_serializable(package="albert_keras")
class AdamW(Lamb):
    """Adam with decoupled weight decay and without bias correction: `Lamb` with every ratio 1.

    Args:
        **kwargs: As in `Lamb`, without `exclude_from_layer_adaptation`.

    Source:
        `AdamWeightDecayOptimizer` in google-research/albert, `optimization.py`.
    """

    def __init__(self, learning_rate: Any = 1e-3, name: str = "AdamW", **kwargs: Any):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)

    def _is_adapted(self, variable):
        return False

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["exclude_from_layer_adaptation"]
        return config


@kernel
def _moments(is_usable, gradient, m, v, weight, rates):
    beta_1, one_minus_beta_1, beta_2, one_minus_beta_2, epsilon, decay = tf.unstack(rates)
    new_m = m * beta_1 + gradient * one_minus_beta_1
    new_v = v * beta_2 + gradient * gradient * one_minus_beta_2
    update = new_m / (tf.sqrt(new_v) + epsilon) + decay * weight
    return tf.where(is_usable, new_m, m), tf.where(is_usable, new_v, v), update


@kernel
def updated(is_usable, weight, update, rate):
    return tf.where(is_usable, weight - rate * update, weight)
