"""The training step of a run around the model of a task: that of pre-training."""

from typing import Any

import keras
import tensorflow as tf

from albert_keras.layers.dropout import DropoutSeed
from albert_keras.models.objective import Objective
from albert_keras.models.objective_model import ObjectiveModel
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.optimization.config import FinetuneOptimizer


class TaskTrainer(ObjectiveModel):
    """Trains a model of texts as `finetune` does: exactly resumed, on any number of devices.

    Its batches are features with the targets of a task. The weights are those of the model, under
    the same names.

    Args:
        model: AlbertForTexts. What it learns is its `compute_losses`.
    """

    optimizer_class = FinetuneOptimizer

    def __init__(self, model: AlbertForTexts):
        super().__init__(name="trainer", dtype=model.dtype_policy)
        self.model = model
        self.built = True

    def stored_model(self) -> keras.Model:
        return self.model

    @property
    def encoder(self) -> Any:
        """AlbertEncoder of the model."""
        return self.model.encoder

    @property
    def features(self) -> Any:
        """FrozenFeatures of the model, or None."""
        return self.model.features

    @property
    def config(self) -> Any:
        """AlbertConfig of the model."""
        return self.model.config

    def compile(self, optimizer: Any, **kwargs: Any) -> None:  # type: ignore[override]
        super().compile(optimizer, {"answer": 1.0}, **kwargs)

    def usual_lr(self, optimizer: str, batch_size: int) -> float:
        return self.model.usual_lr(optimizer, batch_size)

    def outputs_of(
        self, features: dict[str, Any], training: bool, dropout_seed: DropoutSeed | None = None
    ) -> dict[str, Any]:
        return self.model.outputs_of(features, training, dropout_seed)

    def objectives(self, features: dict[str, Any]) -> dict[str, Objective]:
        model, weights = self.model, self.model.weights_of(features)

        def of_rows(outputs):
            # Of each row or position: a loss is weighted, but the sum of losses is divided by the
            # number of rows, not by the sum of their weights.
            losses, is_right = model.compute_losses(outputs, features)
            given = features.get("sample_weight")
            if given is not None:
                given = tf.cast(given, tf.float32)
                given = tf.reshape(given, [-1, *[1] * (losses.shape.rank - 1)])
            return (losses if given is None else losses * given), is_right

        return {"answer": Objective(weights, of_rows)}

    def _results(self):
        return {
            name: value
            for name, value in super()._results().items()
            if self.model.has_accuracy or not name.endswith("_accuracy")
        }
