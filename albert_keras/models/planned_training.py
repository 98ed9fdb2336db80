"""What `compile` and `fit` of all models have in common: optimizers by name, planned rates, and the
settings of `compile` that a file stores.
"""

import types
from collections.abc import Mapping
from typing import Any

import keras

from albert_keras.keras_versions import is_compiled
from albert_keras.optimization.build import PlannedRates, check_schedule, optimizer_of
from albert_keras.optimization.config import OptimizerConfig


class PlannedTraining(keras.Model):
    """Base of the models that are compiled with an optimizer of this project by its name."""

    #: The configuration of an optimizer that `compile` receives by its name.
    optimizer_class: type[OptimizerConfig] = OptimizerConfig
    _planned: PlannedRates | None = None
    #: What `compile` was given beside the optimizer. In this form Keras does not take metrics in
    #: it for parts of the model.
    _compiled_with: Mapping[str, Any] = types.MappingProxyType({})

    def usual_lr(self, optimizer: str, batch_size: int) -> float:
        """Returns the default of the peak learning rate of an optimizer that is named."""
        raise NotImplementedError

    def _remember(self, **given: Any) -> None:
        """Notes what `compile` was given, for files."""
        self._compiled_with = types.MappingProxyType(given)

    def _optimizer(self, given: Any, learning_rate: Any, clips: bool = False) -> Any:
        """Returns the optimizer that `compile` was given, an object or a name.

        Args:
            given: The optimizer. One of ours that is named has a rate that `fit` plans.
            learning_rate: "auto", a number or a schedule.
            clips: Whether ours clip gradients themselves.

        Raises:
            ValueError: For a learning rate beside an optimizer that has one.
        """
        self._planned = PlannedRates.of(self, given, learning_rate)
        with self.distribute_strategy.scope():
            if self._planned is not None:
                return self._planned.optimizer(clips)
            if given is None:
                return None
            return optimizer_of(given, None if learning_rate == "auto" else learning_rate)

    def _plan(self, data: Any, batch_size: Any, epochs: int, **kwargs: Any) -> Any:
        """Plans the rate of a `fit`, whose arguments these are, and returns its callbacks.

        Raises:
            ValueError: If a schedule that was given has ended.
        """
        if self._planned is not None:
            return self._planned.plan(data, batch_size, epochs, **kwargs)
        if getattr(self, "optimizer", None) is not None:
            check_schedule(self.optimizer)
        return kwargs.get("callbacks")

    def _compile_again(self, **config: Any) -> None:
        """Calls `compile` with what a file stores."""
        self.compile(**config)

    def get_compile_config(self) -> dict[str, Any] | None:
        if not is_compiled(self) or self.optimizer is None:
            return None
        config = {**self._compiled_with, "optimizer": self.optimizer}
        self.optimizer.build(self.trainable_variables)  # as it is when the file is loaded
        if self._planned is not None:
            config["planned"] = self._planned.settings
        return {name: keras.saving.serialize_keras_object(one) for name, one in config.items()}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        config = keras.saving.deserialize_keras_object(config)
        planned = config.pop("planned", None)
        self._compile_again(**config)
        if planned is not None:
            self._planned = PlannedRates(self, **planned)
        self.optimizer.build(self.trainable_variables)  # so that Keras can restore the moments
