"""Losses and metrics of Keras for models whose training step has its own loss."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow import keras

from data_pipeline.errors import InputError


class LossOfKeras:
    """A loss of Keras, or a function of labels and predictions, without its mean over the rows.

    Args:
        given: keras.losses.Loss, its name, or a function that returns one value for each row.

    Raises:
        InputError: If it needs logits: the models return probabilities.
    """

    def __init__(self, given: Any):
        self.given = given
        loss = keras.losses.get(given)
        is_object = isinstance(loss, keras.losses.Loss)
        if is_object and loss.get_config().get("from_logits"):
            raise InputError(
                "`loss` must have `from_logits=False`: the model returns probabilities. "
                "Received: a loss with `from_logits=True`."
            )
        self._function: Callable[..., Any] = loss.call if is_object else loss

    def __call__(self, labels: tf.Tensor, predictions: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each prediction, float32, of the rank of the labels."""
        labels = _of_rank(labels, predictions)
        return tf.cast(self._function(labels, predictions), tf.float32)


class MetricsOfKeras:
    """Metrics of Keras by their names; call it in the scope of the model's strategy.

    An object of this class is no part of a model: its variables are no weights.

    Args:
        metrics: Metrics, their names, or functions of labels and predictions.
        weighted: Those that `sample_weight` and `class_weight` weight.
    """

    def __init__(self, metrics: Sequence[Any] = (), weighted: Sequence[Any] = ()):
        self._plain = [_metric(each) for each in metrics]
        self._weighted = [_metric(each) for each in weighted]

    @property
    def all(self) -> list[keras.metrics.Metric]:
        """All metrics."""
        return self._plain + self._weighted

    def update(
        self, labels: Any, predictions: Any, weights: Any = None, sample_weight: Any = None
    ) -> None:
        """Adds a batch; `weights` are 0 for what does not count, `sample_weight` is the user's."""
        labels = _of_rank(labels, predictions)
        if sample_weight is not None and weights is not None:
            sample_weight = sample_weight * weights
        for metric in self._plain:
            metric.update_state(labels, predictions, sample_weight=weights)
        for metric in self._weighted:
            used = weights if sample_weight is None else sample_weight
            metric.update_state(labels, predictions, sample_weight=used)

    def results(self) -> dict[str, Any]:
        """Returns the values by name."""
        return {metric.name: metric.result() for metric in self.all}

    def reset(self) -> None:
        """Sets all metrics back."""
        for metric in self.all:
            metric.reset_state()


def _metric(given):
    found = keras.metrics.get(given)
    if isinstance(found, keras.metrics.Metric):
        return found
    return keras.metrics.MeanMetricWrapper(found, name=getattr(found, "__name__", str(given)))


def _of_rank(labels, predictions):
    """Returns labels [B] as [B, 1] if predictions have a column for each class, as Keras does."""
    if labels.shape.rank == 1 and predictions.shape.rank == 2:
        return labels[:, None]
    return labels
