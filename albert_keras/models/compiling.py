"""What `compile` is given by its name or as an object of Keras: optimizers, losses and metrics.

An optimizer of this project that is named has the learning rate of our trainings. Its schedule
needs the number of updates, which `fit` knows and `compile` does not. So the optimizer is made by
`compile`, and each `fit` gives it a schedule of its own.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from albert_keras.optimization.build import build_optimizer
from albert_keras.optimization.schedules import WarmupPolynomialDecay
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: The optimizers that have defaults of this project.
NAMES = ("lamb", "adamw", "muon")
#: Rows of a batch, as far as the rate of an optimizer depends on them, before `fit`.
_USUAL_BATCH = 32
#: Updates of the warm-up if the length of a training is unknown.
_WARMUP = 100


class PlannedRates:
    """Makes an optimizer of this project, and plans its learning rate for each `fit`.

    Args:
        model: ObjectiveModel, whose `optimizer_class` and `usual_lr` are the defaults.
        name: One of `NAMES`.
        learning_rate: Peak of the rate; "auto" is the default of the model.
    """

    def __init__(self, model: Any, name: str, learning_rate: float | str = "auto"):
        self._model, self.settings = model, {"name": name, "learning_rate": learning_rate}

    @classmethod
    def of(cls, model: Any, optimizer: Any, learning_rate: Any) -> "PlannedRates | None":
        """Returns the plan of what `compile` was given; None if the rate is not ours to plan.

        Raises:
            ValueError: For a learning rate beside an optimizer that has one.
        """
        is_named = isinstance(optimizer, str) and optimizer.lower() in NAMES
        if learning_rate != "auto" and not isinstance(optimizer, str):
            raise ValueError(
                "`learning_rate` requires an optimizer that is given by its name. Received: "
                f"{type(optimizer).__name__}, which has a learning rate of its own."
            )
        schedules = keras.optimizers.schedules.LearningRateSchedule
        if not is_named or isinstance(learning_rate, schedules):
            return None
        return cls(model, optimizer.lower(), learning_rate)

    def optimizer(self) -> keras.optimizers.Optimizer:
        """Makes the optimizer; until `fit` plans its rate, this is constant, at its peak."""
        config = self._config(_USUAL_BATCH).replace(power=0.0, warmup_steps=0)
        is_narrow = self._model.dtype_policy.name == "mixed_bfloat16"
        dtype = "bfloat16" if is_narrow else "float32"
        return build_optimizer(config, num_steps=1, matrix_dtype=dtype)

    def plan(
        self,
        data: Any,
        epochs: int = 1,
        steps_per_epoch: int | None = None,
        initial_epoch: int = 0,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **_: Any,
    ) -> None:
        """Plans the rate of a `fit`; arguments as there.

        The rate rises from 0 and falls to 0 within the updates of all epochs. A later `fit` begins
        where the updates of the earlier ones ended.

        Raises:
            ValueError: For callbacks that change the rate.
        """
        setters = keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau
        for callback in callbacks if isinstance(callbacks, list | tuple) else ():
            if isinstance(callback, setters):
                raise ValueError(
                    f"`{type(callback).__name__}` has no effect on the learning rate of "
                    f"`{self.settings['name']}`, which has a schedule of its own. Give `compile` "
                    "an optimizer with a constant rate."
                )
        optimizer, steps = self._model.optimizer, steps_per_epoch or _num_batches(data)
        done = int(optimizer.iterations.numpy())
        config = self._config(_rows_of(data) or _USUAL_BATCH)
        if steps is None:
            logger.warning(
                "The length of the data is unknown, so that the learning rate does not decay. Give "
                "`steps_per_epoch`."
            )
            length, warmup, config = _WARMUP, _WARMUP, config.replace(power=0.0)
        else:
            length = max(epochs * steps, 1)
            warmup = config.usual_warmup(length)
        start = max(done - initial_epoch * (steps or 0), 0)
        optimizer.learning_rate = WarmupPolynomialDecay(
            config.lr,
            num_steps=start + length,
            warmup_steps=warmup,
            power=config.power,
            start_warmup_step=start,
            decay_from_warmup_end=start > 0,
        )
        if done:  # compiled steps have the schedule of an earlier training
            self._model.forget_graphs()

    def _config(self, batch_size):
        """Returns the OptimizerConfig, with a rate, for batches of some rows."""
        name, rate = self.settings["name"], self.settings["learning_rate"]
        lr = self._model.usual_lr(name, batch_size) if rate == "auto" else float(rate)
        return self._model.optimizer_class(name=name).with_values(name, lr)


def check_schedule(optimizer: Any) -> None:
    """Raises ValueError if the learning rate of an optimizer is 0 from now on."""
    schedule = getattr(optimizer, "_learning_rate", None)
    done = int(optimizer.iterations.numpy())
    if (
        isinstance(schedule, WarmupPolynomialDecay)
        and schedule.power
        and done >= schedule.num_steps
    ):
        raise ValueError(
            f"The schedule of the learning rate has ended after {schedule.num_steps:,} updates: it "
            "is 0. Call `compile` with another one before you train the model further."
        )


def _num_batches(data):
    """Returns the number of batches of a data set or a Sequence; None if it is unknown."""
    if isinstance(data, keras.utils.Sequence):
        return len(data)
    if not isinstance(data, tf.data.Dataset):
        return None
    count = int(data.cardinality().numpy())
    return count if count > 0 else None


def _rows_of(data):
    """Returns the static number of rows in a batch of a data set; None if it has none."""
    specs = tf.nest.flatten(getattr(data, "element_spec", ()))
    shapes = [getattr(spec, "shape", None) for spec in specs]
    return shapes[0][0] if shapes and shapes[0] is not None and shapes[0].rank else None


def loss_of_keras(given: Any) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """Returns a function of labels and predictions: the loss of each, float32, without their mean.

    Args:
        given: keras.losses.Loss, its name, or a function that returns one value for each row.

    Raises:
        InputError: If it needs logits, as the models return probabilities; or if it is reduced in
            another way than to the mean.
    """
    loss = keras.losses.get(given)
    if isinstance(loss, keras.losses.Loss):
        if loss.reduction not in (None, "none", "auto", "sum_over_batch_size"):
            raise InputError(
                "`loss` must have the default `reduction`: the model takes the mean of its rows. "
                f"Received: a loss with `reduction={loss.reduction!r}`."
            )
        if loss.get_config().get("from_logits"):
            raise InputError(
                "`loss` must have `from_logits=False`: the model returns probabilities. "
                "Received: a loss with `from_logits=True`."
            )
        loss = loss.call
    return lambda labels, predictions: tf.cast(
        loss(_of_rank(labels, predictions), predictions), tf.float32
    )


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

    def update(self, labels: Any, predictions: Any, weights: Any, sample_weight: Any) -> None:
        """Adds a batch; `weights` are 0 for what does not count, `sample_weight` is the user's."""
        labels = _of_rank(labels, predictions)
        of_user = weights if sample_weight is None else sample_weight * weights
        for metric in self._plain:
            metric.update_state(labels, predictions, sample_weight=weights)
        for metric in self._weighted:
            metric.update_state(labels, predictions, sample_weight=of_user)

    def results(self) -> dict[str, Any]:
        """Returns the values by name."""
        return {metric.name: metric.result() for metric in self.all}

    def reset(self) -> None:
        """Sets all metrics back."""
        for metric in self.all:
            metric.reset_state()


def _metric(given):
    found = _accuracy if given in ("accuracy", "acc") else keras.metrics.get(given)
    if isinstance(found, keras.metrics.Metric):
        return found
    if not callable(found):
        raise InputError(f"`metrics` must have names of Keras. Received: {given!r}.")
    # As in Keras, a metric has the name by which it is given.
    name = given if isinstance(given, str) else getattr(found, "__name__", str(given))
    return keras.metrics.MeanMetricWrapper(found, name=name)


def _accuracy(labels, predictions):
    """Returns 1 where a class is right, by its number or one-hot, or the share of right labels."""
    if labels.shape.rank < predictions.shape.rank or labels.shape[-1] < predictions.shape[-1]:
        return keras.metrics.sparse_categorical_accuracy(labels, predictions)
    if labels.dtype.is_integer:  # whether each of several labels applies
        return keras.metrics.binary_accuracy(labels, predictions)
    return keras.metrics.categorical_accuracy(labels, predictions)


def _of_rank(labels, predictions):
    """Returns labels [B] as [B, 1] if predictions have a column for each class, as Keras does."""
    if labels.shape.rank == 1 and predictions.shape.rank == 2:
        return labels[:, None]
    return labels
