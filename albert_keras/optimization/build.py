"""Builds the optimizer of a configuration or of a name, plans its rate, and clips gradients.

An optimizer of this project that is named has the learning rate of our trainings. Its schedule
needs the number of updates, which `fit` knows and `compile` does not. So the optimizer is made by
`compile`, and each `fit` gives it a schedule of its own.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

import keras
import tensorflow as tf

from albert_keras.keras_versions import (
    OptimizerOfBoth,
    batches_done,
    batches_passed,
    forget_steps,
    num_batches,
)
from albert_keras.optimization.lamb import EXCLUDED, AdamW, Lamb
from albert_keras.optimization.muon import Muon
from albert_keras.optimization.schedules import WarmupPolynomialDecay

logger = logging.getLogger(__name__)

#: The optimizers of this project by name.
_NAMED: dict[str, Any] = {"lamb": Lamb, "adamw": AdamW, "muon": Muon}
#: Rows of a batch, as far as the rate of an optimizer depends on them, before `fit`.
_USUAL_BATCH = 32
#: Updates of the warm-up if the length of a training is unknown.
_WARMUP = 100


def optimizer_of(given: Any, learning_rate: Any = None) -> Any:
    """Returns an optimizer for its name: ours for "lamb", "adamw" and "muon", else Keras' own.

    Args:
        given: The name; an optimizer is returned as it is.
        learning_rate: A number or a schedule for an optimizer that is named; None is its default.
    """
    settings = {} if learning_rate is None else {"learning_rate": learning_rate}
    if isinstance(given, str) and given.lower() in _NAMED:
        return _NAMED[given.lower()](**settings)
    if isinstance(given, str) and settings:
        return type(keras.optimizers.get(given))(**settings)
    return keras.optimizers.get(given)


def build_optimizer(config, *, num_steps, adjustable=False, matrix_dtype="float32", clips=False):
    """Returns the optimizer that `config` describes, with its learning rate schedule.

    Our own training step clips with `clip_gradients`, because it needs the norm. Under a strategy,
    call this inside `strategy.scope()`.

    Args:
        config: OptimizerConfig. Its name and its rate must be values, not "auto": what "auto" means
            depends on the model and its training, see `OptimizerConfig.resolved`.
        num_steps: int. Number of updates of the run; the learning rate is 0 from there on.
        adjustable: bool. Whether the end of the schedule may change during training.
        matrix_dtype: str. Type in which Muon multiplies matrices.
        clips: bool. Whether the optimizer itself clips gradients, by their global norm.

    Returns:
        Lamb, AdamW or Muon.

    Raises:
        InputError: If the warm-up is longer than the run.
    """
    if "auto" in (config.name, config.lr):
        raise ValueError(
            "`config` must be resolved, with a name and a rate that are not auto. "
            f"Received: name={config.name!r}, lr={config.lr!r}."
        )
    schedule = WarmupPolynomialDecay(
        learning_rate=config.lr,
        num_steps=num_steps,
        warmup_steps=config.warmup_for(num_steps),
        power=config.power,
        decay_from_warmup_end=config.decay_from_warmup_end,
        adjustable=adjustable,
    )
    lamb = partial(Lamb, exclude_from_layer_adaptation=(*EXCLUDED, *config.unscaled))
    muon = partial(Muon, matrix_dtype=matrix_dtype)
    return (_NAMED | {"lamb": lamb, "muon": muon})[config.name](
        learning_rate=schedule,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        weight_decay=config.weight_decay,
        global_clipnorm=config.clip_norm if clips else None,
    )


def clip_gradients(gradients, clip_norm, norm, is_usable):
    """Returns gradients scaled down until their global norm is at most `clip_norm`.

    Meant for gradients already summed over the replicas. The reference clips on each TPU core and
    averages afterwards, so that its result depends on the number of cores; this one does not.

    Args:
        gradients: list of float Tensor.
        clip_norm: float. Largest norm allowed, or None to clip nothing.
        norm: float32 scalar. The global norm of the gradients. If it is not finite and they are
            clipped, all become NaN, and the update must be skipped.
        is_usable: bool scalar. Whether the update may be applied; if not, all gradients become NaN.

    Source:
        `tf.clip_by_global_norm` in google-research/albert, `optimization.py`.
    """
    factor = 1.0
    if clip_norm is not None:
        factor = clip_norm * tf.minimum(1 / norm, 1 / clip_norm)
        is_usable = is_usable & tf.math.is_finite(norm)
    # One factor for clipping and NaN, so that gradients are read once.
    factor = tf.where(is_usable, factor, float("nan"))
    return [gradient * factor for gradient in gradients]


class PlannedRates:
    """Makes an optimizer of this project, and plans its learning rate for each `fit`.

    Args:
        model: A compiled model, whose `optimizer_class` and `usual_lr` are the defaults.
        name: One of lamb, adamw and muon.
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
        is_named = isinstance(optimizer, str) and optimizer.lower() in _NAMED
        if learning_rate != "auto" and not isinstance(optimizer, str):
            raise ValueError(
                "`learning_rate` requires an optimizer that is given by its name. Received: "
                f"{type(optimizer).__name__}, which has a learning rate of its own."
            )
        schedules = keras.optimizers.schedules.LearningRateSchedule
        if not is_named or isinstance(learning_rate, schedules):
            return None
        return cls(model, optimizer.lower(), learning_rate)

    def optimizer(self, clips: bool = False) -> keras.optimizers.Optimizer:
        """Makes the optimizer; until `fit` plans its rate, this is constant, at its peak.

        `clips` is whether it clips gradients itself, as a training step of Keras needs it.
        """
        config = self._model.optimizer_class(power=0.0, warmup_steps=0)
        config = config.with_values(self.settings["name"], self._rate(_USUAL_BATCH))
        is_narrow = self._model.dtype_policy.name == "mixed_bfloat16"
        dtype = "bfloat16" if is_narrow else "float32"
        return build_optimizer(config, num_steps=1, matrix_dtype=dtype, clips=clips)

    def plan(
        self,
        data: Any,
        batch_size: int | None = None,
        epochs: int = 1,
        steps_per_epoch: int | None = None,
        initial_epoch: int = 0,
        callbacks: Sequence[keras.callbacks.Callback] | None = None,
        **_: Any,
    ) -> Any:
        """Plans the rate of a `fit`; arguments as there.

        The rate rises from 0 and falls to 0 within the updates of all epochs. A later `fit` begins
        where the updates of the earlier ones ended; one that `BackupAndRestore` continues has the
        rates that it would have had.

        Returns:
            The callbacks for `fit`, with one that plans again after the others have begun.

        Raises:
            ValueError: For callbacks that change the rate, and for `BackupAndRestore` if the length
                of the data is unknown.
        """
        optimizer, steps = self._model.optimizer, steps_per_epoch or _num_batches(data, batch_size)
        setters = keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau
        for callback in callbacks if isinstance(callbacks, list | tuple) else ():
            if isinstance(callback, setters):
                raise ValueError(
                    f"`{type(callback).__name__}` has no effect on the learning rate of "
                    f"`{self.settings['name']}`, which has a schedule of its own. Give `compile` "
                    "an optimizer with a constant rate."
                )
            if isinstance(callback, keras.callbacks.BackupAndRestore) and steps is None:
                raise ValueError(
                    "`BackupAndRestore` cannot continue the learning rate of "
                    f"`{self.settings['name']}` where the length of the data is unknown. Give "
                    "`steps_per_epoch`."
                )
        rate, power = self._rate(batch_size or _rows_of(data) or _USUAL_BATCH), 1.0
        if steps is None:
            logger.warning(
                "The length of the data is unknown, so that the learning rate does not decay. Give "
                "`steps_per_epoch`."
            )
            length, warmup, power = _WARMUP, _WARMUP, 0.0
        else:
            length = max(epochs * steps, 1)
            warmup = self._model.optimizer_class.usual_warmup(length)

        def begin(passed):
            """Sets the rate of a training of which `passed` updates are done."""
            done = int(optimizer.iterations.numpy())
            start = max(done - passed, 0)
            optimizer.learning_rate = WarmupPolynomialDecay(
                rate,
                num_steps=start + length,
                warmup_steps=warmup,
                power=power,
                start_warmup_step=start,
                decay_from_warmup_end=start > 0,
            )
            if done:  # compiled steps have the schedule of an earlier training
                forget_steps(self._model)

        def begin_again(logs):
            if steps is not None:
                begin(batches_passed(self._model, steps, initial_epoch))
                self._model.make_train_function()

        begin(initial_epoch * (steps or 0))
        if isinstance(callbacks, keras.callbacks.CallbackList):
            return callbacks
        last = keras.callbacks.LambdaCallback(on_train_begin=begin_again)
        return [*tf.nest.flatten(callbacks or []), last]

    def _rate(self, batch_size):
        """Returns the peak of the rate for batches of some rows."""
        name, rate = self.settings["name"], self.settings["learning_rate"]
        return self._model.usual_lr(name, batch_size) if rate == "auto" else float(rate)


def check_schedule(optimizer: Any) -> None:
    """Raises ValueError if the learning rate of an optimizer is 0 from now on."""
    schedule = getattr(optimizer, "_learning_rate", None)
    # Keras 3 asks for the rate of a batch, our optimizers for that of an update.
    is_ours = isinstance(optimizer, OptimizerOfBoth)
    done = int((optimizer.iterations if is_ours else batches_done(optimizer)).numpy())
    if (
        isinstance(schedule, WarmupPolynomialDecay)
        and schedule.power
        and done >= schedule.num_steps
    ):
        raise ValueError(
            f"The schedule of the learning rate has ended after {schedule.num_steps:,} updates: it "
            "is 0. Call `compile` with another one before you train the model further."
        )


def _num_batches(data, batch_size):
    """Returns the number of batches of data in any form of Keras; None if it is unknown."""
    if isinstance(data, keras.utils.Sequence):
        return num_batches(data)
    if isinstance(data, tf.data.Dataset):
        count = int(data.cardinality())
        return count if count > 0 else None
    arrays = tf.nest.flatten(data)
    if not arrays or not hasattr(arrays[0], "shape"):  # of a generator
        return None
    return -(-arrays[0].shape[0] // (batch_size or _USUAL_BATCH))


def _rows_of(data):
    """Returns the static number of rows in a batch of a data set; None if it has none."""
    specs = tf.nest.flatten(getattr(data, "element_spec", ()), expand_composites=True)
    shapes = [getattr(spec, "shape", None) for spec in specs]
    return shapes[0][0] if shapes and shapes[0] is not None and shapes[0].rank else None
