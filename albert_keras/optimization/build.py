"""Builds the optimizer of a configuration, and clips gradients."""

from functools import partial
from typing import Any

import keras
import tensorflow as tf

from albert_keras.optimization.lamb import AdamW, Lamb
from albert_keras.optimization.muon import Muon
from albert_keras.optimization.schedules import WarmupPolynomialDecay

#: The optimizers of this project by name.
_NAMED: dict[str, Any] = {"lamb": Lamb, "adamw": AdamW, "muon": Muon}


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
    unscaled = (*config.exclude_patterns, *config.unscaled_patterns)
    lamb = partial(Lamb, exclude_from_layer_adaptation=unscaled)
    muon = partial(Muon, momentum=config.momentum, matrix_dtype=matrix_dtype)
    return (_NAMED | {"lamb": lamb, "muon": muon})[config.name](
        learning_rate=schedule,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        weight_decay=config.weight_decay,
        exclude_from_weight_decay=config.exclude_patterns,
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
