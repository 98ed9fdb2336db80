"""LAMB and AdamW as in google-research/albert. Both are legacy Keras optimizers:
`model.fit` and `tf.train.Checkpoint` accept them, but a `.keras` file stores only their
configuration, not their moments and step (a limitation of Keras 2.15).
"""

import re
from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow import keras

from albert_keras.layers.kernels import kernel
from albert_keras.optimization.lamb_base import base_of_lamb

_Base: Any = base_of_lamb()


@keras.saving.register_keras_serializable(package="albert_keras")
class Lamb(_Base):
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
        weight_decay: float. Decoupled weight decay.
        exclude_from_weight_decay: list of str. Regular expressions. Variables whose name (without
            ":0") contains a match do not decay.
        exclude_from_layer_adaptation: list of str. The same for the trust ratio, which is then 1.
            None or empty uses `exclude_from_weight_decay`.
        name: str. Name of the optimizer.
        **kwargs: Of `keras.optimizers.legacy.Optimizer`.

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
        weight_decay: float = 0.01,
        exclude_from_weight_decay: Sequence[str] | None = None,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "Lamb",
        **kwargs: Any,
    ):
        super().__init__(
            learning_rate=learning_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            exclude_from_weight_decay=list(exclude_from_weight_decay or ()),
            exclude_from_layer_adaptation=list(exclude_from_layer_adaptation or ()),
            name=name,
            **kwargs,
        )
        # Numbers would become variables, and a restored checkpoint would silently replace the
        # configured values; functions are not stored in checkpoints.
        self._set_hyper("beta_1", lambda: beta_1)
        self._set_hyper("beta_2", lambda: beta_2)
        self._set_hyper("weight_decay", lambda: weight_decay)

    def _prepare_local(self, var_device, var_dtype, apply_state):
        super()._prepare_local(var_device, var_dtype, apply_state)
        apply_state[(var_device, var_dtype)].update(
            # Computed in Python: in float32, 1 - 0.999 has a relative error of 1.3e-5.
            one_minus_beta_1_t=tf.constant(1 - self._get_hyper("beta_1"), var_dtype),
            one_minus_beta_2_t=tf.constant(1 - self._get_hyper("beta_2"), var_dtype),
        )

    def moments_of(self, variable: tf.Variable) -> tuple[str, ...]:
        """Returns the names of the slots that are kept for a variable."""
        return ("m", "v")

    def _create_slots(self, var_list):
        for variable in var_list:
            for name in self.moments_of(variable):
                self.add_slot(variable, name)

    def _resource_apply_dense(self, grad, var, apply_state=None):
        key = (var.device, var.dtype.base_dtype)
        given = (apply_state or {}).get(key) or self._fallback_apply_state(*key)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        # A selection instead of a branch: it compiles for TPUs, and replicas cannot diverge.
        is_usable = tf.math.is_finite(tf.nn.l2_loss(grad))
        decay = given["weight_decay"] if self._do_use_weight_decay(var) else tf.zeros([], var.dtype)
        rates = [given[f"{name}_t"] for name in ("beta_1", "one_minus_beta_1")]
        rates += [given[f"{name}_t"] for name in ("beta_2", "one_minus_beta_2")]
        weight = tf.convert_to_tensor(var)
        new_m, new_v, update = _moments(
            is_usable, grad, m, v, weight, tf.stack([*rates, given["epsilon"], decay])
        )
        ratio = self._trust_ratio(weight, update) if self._do_layer_adaptation(var) else 1.0
        new = updated(is_usable, weight, update, ratio * given["lr_t"])
        return tf.group(
            *(
                old.assign(value, use_locking=self._use_locking)
                for old, value in ((m, new_m), (v, new_v), (var, new))
            )
        )

    @staticmethod
    def _trust_ratio(var, update):
        # `l2_loss` is half the sum of squares, a fast reduction on CPUs; the halves cancel out.
        weight_norm, update_norm = (tf.sqrt(tf.nn.l2_loss(tensor)) for tensor in (var, update))
        has_both = (weight_norm > 0) & (update_norm > 0)
        return tf.where(has_both, tf.math.divide_no_nan(weight_norm, update_norm), 1.0)

    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        dense = tf.math.unsorted_segment_sum(grad, indices, var.shape[0])  # like `var`
        return self._resource_apply_dense(dense, var, apply_state)

    def _resource_apply_sparse_duplicate_indices(self, grad, handle, indices, **kwargs):
        # The sum above handles repeated rows; Keras would merge them by tf.unique, whose result
        # has no static shape and does not compile for TPUs.
        return self._resource_apply_sparse(grad, handle, indices, **kwargs)

    def _do_use_weight_decay(self, variable):
        return not is_named_by(self.exclude_from_weight_decay, variable)

    def _do_layer_adaptation(self, variable):
        return not is_named_by(self.exclude_from_layer_adaptation, variable)


@keras.saving.register_keras_serializable(package="albert_keras")
class AdamW(Lamb):
    """Adam with decoupled weight decay and without bias correction: `Lamb` with every ratio 1.

    Args:
        learning_rate: float or LearningRateSchedule.
        beta_1: float. Decay rate of the first moment.
        beta_2: float. Decay rate of the second moment.
        epsilon: float. Added outside the root.
        weight_decay: float. Decoupled weight decay, multiplied by the learning rate.
        exclude_from_weight_decay: list of str. Regular expressions as in `Lamb`.
        name: str. Name of the optimizer.
        **kwargs: Of `keras.optimizers.legacy.Optimizer`.

    Source:
        `AdamWeightDecayOptimizer` in google-research/albert, `optimization.py`.
    """

    def __init__(
        self,
        learning_rate=1e-3,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        weight_decay=0.01,
        exclude_from_weight_decay=None,
        name="AdamW",
        **kwargs,
    ):
        super().__init__(
            learning_rate=learning_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            weight_decay=weight_decay,
            exclude_from_weight_decay=exclude_from_weight_decay,
            name=name,
            **kwargs,
        )

    def _do_layer_adaptation(self, variable):
        return False

    def get_config(self):
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


def is_named_by(patterns, variable):
    # Under MirroredStrategy copies are named "dense/bias/replica_1:0". Without the suffix a pattern
    # such as "bias$" matches on every replica; otherwise the replicas would diverge.
    name = re.sub(r"(/replica_\d+)?:\d+$", "", variable.name)
    return any(re.search(pattern, name) for pattern in patterns)
