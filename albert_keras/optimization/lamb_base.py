"""The base of `Lamb`: hyperparameters and their serialization, without an update.

With TensorFlow 2.15 it is the class of tensorflow-addons, which this module alone imports. There
is no tensorflow-addons for later versions; `PlainLamb` does the same there.
"""

import warnings

import tensorflow as tf
from tensorflow import keras

from data_pipeline.tensorflow_line import needs_tf_keras

_HYPERPARAMETERS = ("learning_rate", "weight_decay", "decay", "beta_1", "beta_2")


class PlainLamb(keras.optimizers.legacy.Optimizer):
    """The parts of `LAMB` of tensorflow-addons that `Lamb` uses, with the same numbers and names.

    Checkpoints and configurations are interchangeable with tensorflow-addons.

    Source:
        `tensorflow_addons/optimizers/lamb.py`, version 0.23.0.
    """

    def __init__(
        self,
        learning_rate,
        beta_1,
        beta_2,
        epsilon,
        weight_decay,
        exclude_from_weight_decay,
        exclude_from_layer_adaptation,
        name,
        **kwargs,
    ):
        super().__init__(name, **kwargs)
        self._set_hyper("weight_decay", weight_decay)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon or keras.backend.epsilon()
        self.exclude_from_weight_decay = exclude_from_weight_decay
        self.exclude_from_layer_adaptation = (
            exclude_from_layer_adaptation or exclude_from_weight_decay
        )

    def _prepare_local(self, var_device, var_dtype, apply_state):
        super()._prepare_local(var_device, var_dtype, apply_state)
        apply_state[(var_device, var_dtype)].update(
            weight_decay=tf.identity(self._get_hyper("weight_decay", var_dtype)),
            epsilon=tf.convert_to_tensor(self.epsilon, var_dtype),
            beta_1_t=tf.identity(self._get_hyper("beta_1", var_dtype)),
            beta_2_t=tf.identity(self._get_hyper("beta_2", var_dtype)),
        )

    def get_config(self):
        return {
            **super().get_config(),
            **{name: self._serialize_hyperparameter(name) for name in _HYPERPARAMETERS},
            "epsilon": self.epsilon,
            "exclude_from_weight_decay": self.exclude_from_weight_decay,
            "exclude_from_layer_adaptation": self.exclude_from_layer_adaptation,
        }


def base_of_lamb() -> type[keras.optimizers.legacy.Optimizer]:
    """Returns the class that `Lamb` is derived from with the installed TensorFlow."""
    if needs_tf_keras():
        return PlainLamb
    with warnings.catch_warnings():
        # tensorflow-addons warns of its end of life and of every TensorFlow after 2.14. The tests
        # compare `Lamb` with numbers computed by hand.
        warnings.simplefilter("ignore")
        import tensorflow_addons as tfa
    return tfa.optimizers.LAMB
