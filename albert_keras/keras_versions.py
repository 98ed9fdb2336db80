"""What differs between Keras 2.15 and Keras 3: no other module asks for the version.

TensorFlow 2.15 has Keras 2.15, TensorFlow 2.21 has Keras 3. Both are `import keras`.
"""

import contextlib
import math
import pathlib
import re
import types
import warnings
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from data_pipeline.errors import InputError

_IS_KERAS_3 = keras.__version__.startswith("3.")
if _IS_KERAS_3 and keras.config.backend() != "tensorflow":
    raise InputError(
        f"Keras must run on TensorFlow. Received: {keras.config.backend()}. Unset KERAS_BACKEND; "
        "a file `.keras/keras.json` in the home folder may name it, too."
    )
#: Under MirroredStrategy copies are named "dense/bias/replica_1:0".
_COPY = re.compile(r"(/replica_\d+)?:\d+$")
#: Settings of optimizers that only the other Keras has.
_OF_THE_OTHER = (
    ("jit_compile", "is_legacy_optimizer")
    if _IS_KERAS_3
    else ("loss_scale_factor", "gradient_accumulation_steps")
)

# === Layers and weights


def take_any_inputs(layer: keras.layers.Layer) -> None:
    """Lets a layer be called with any objects, which its `call` converts.

    Keras 3 would convert all arguments, and refuse objects by position that are no tensors.
    """
    if _IS_KERAS_3:
        layer._convert_input_args, layer._allow_non_tensor_positional_args = False, True


def builds_from_shapes() -> bool:
    """Returns whether Keras calls a model to create its weights, with inputs of float32.

    Of a subclass of `keras.Model`, a file has the shapes of inputs alone.
    """
    graph = "" if tf.executing_eagerly() else tf.compat.v1.get_default_graph().name
    return graph.startswith(("scratch_graph", "build_graph"))  # of Keras 3, of Keras 2.15


def export_along(resource: Any) -> None:
    """Lets `Model.export` of Keras take an object of a layer along, with its tables.

    Keras 3 does this for all; Keras 2.15 for its lookup layers, of which this makes it one.
    """
    if not _IS_KERAS_3:
        lookup_layer = keras.layers.StringLookup.__mro__[1]
        lookup_layer.register(type(resource))


def any_inputs(inputs: Any) -> Any:
    """Hides a dict or tuple of tensors and other objects from Keras 3, which would refuse it."""
    if not _IS_KERAS_3 or not isinstance(inputs, dict | tuple):
        return inputs
    parts = inputs.values() if isinstance(inputs, dict) else inputs
    if len({isinstance(each, tf.Tensor | keras.KerasTensor) for each in parts}) < 2:
        return inputs
    if isinstance(inputs, dict):
        return types.MappingProxyType(inputs)
    return tuple(map(tf.convert_to_tensor, inputs))


def new_weight(layer: keras.layers.Layer, name: str, shape: Any, initializer: Any) -> Any:
    """Returns a weight for an attribute of a layer, with this full name in any context.

    Args:
        layer: The layer; its policy decides the type of the weight.
        name: str. Full name of the weight in the reference, with "/".
        shape: tuple of int.
        initializer: Initializer of Keras, or its name.
    """
    scope, _, last = name.rpartition("/")
    if _IS_KERAS_3:
        parent, _, inner = scope.rpartition("/")
        with tf.init_scope(), keras.name_scope(inner, override_parent=parent):
            return keras.Variable(
                initializer, shape, layer.variable_dtype, name=last, autocast=False
            )
    # The slash at the end makes the scope absolute: enclosing scopes, for example of a
    # surrounding model, do not become part of the name.
    with tf.init_scope(), tf.name_scope(f"{scope}/" if scope else ""):
        return layer.add_weight(last, shape, initializer=initializer, experimental_autocast=False)


def name_of(variable: Any) -> str:
    """Returns the full name of a weight, which is that of the reference for weights of ours.

    The copies of replicas have the same name, so that a pattern such as "bias$" matches on all of
    them; otherwise the replicas would diverge.
    """
    return getattr(variable, "path", None) or _COPY.sub("", variable.name)


def groups_above(store: Any) -> list[Any]:
    """Returns what the models around a layer have in a file: groups of HDF5.

    Args:
        store: What Keras gives a layer to store its weights in, or to load them from.
    """
    if _IS_KERAS_3:
        file, path = getattr(store, "h5_file", None), getattr(store, "_h5_entry_path", "")
    else:
        file, path = getattr(store, "file", None), getattr(store, "name", "").removesuffix("/vars")
    above = [f"{parent}/vars" for parent in pathlib.PurePosixPath(path).parents]
    return [file[name] for name in above if name in file]


def variable_of(weight: Any) -> tf.Variable:
    """Returns the variable of TensorFlow that a weight is, or has, for graphs of TensorFlow."""
    return weight.value if _IS_KERAS_3 else weight


# === Models


class OwnStepModel(keras.Model):
    """A model with a training step, means and a loss scale of its own, which Keras leaves alone."""

    def compile(self, optimizer: Any = None, **kwargs: Any) -> None:
        own_step = {"jit_compile": False, "auto_scale_loss": False} if _IS_KERAS_3 else {}
        super().compile(optimizer=optimizer, **own_step, **kwargs)

    def _get_optimizer(self, optimizer):
        # Keras 2.15 would refuse None, and wrap an optimizer for float16, whose gradients the guard
        # must see before that.
        return optimizer

    def _maybe_symbolic_build(self, *args, **kwargs):
        """Called by Keras 3, to create variables, which exist; it cannot with several workers."""


class BuiltModel(keras.Model):
    """A model whose weights exist, so that Keras builds the metrics of `compile` alone."""

    @property
    def has_symbolic_loss(self) -> bool:
        """bool. Whether the loss can be computed from shapes, without values."""
        return True

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Called by Keras 3, which would build metrics from the mean of the replicas' ids."""
        if iterator is not None and self._distribute_strategy is not None:
            results = self.distribute_strategy.experimental_local_results
            _, _, batches = next(iter(iterator))
            data_batch = tf.nest.map_structure(lambda one: results(one)[0], next(batches))
        loss = self._compile_loss
        self._compile_loss = loss if self.has_symbolic_loss else None
        super()._maybe_symbolic_build(data_batch=data_batch)
        self._compile_loss = loss


def forget_steps(model: keras.Model) -> None:
    """Makes `fit` of a model trace its step again."""
    model.train_function = model.train_tf_function = None  # the second is that of Keras 2.15


def is_compiled(model: keras.Model) -> bool:
    """Returns whether `compile` of a model has been called."""
    return bool(model.compiled if _IS_KERAS_3 else model._is_compiled)


def steps_per_execution(model: keras.Model) -> int:
    """Returns how many steps `fit` of a compiled model makes at a time."""
    return int(model.steps_per_execution if _IS_KERAS_3 else model._steps_per_execution.numpy())


def fit_executions(model: keras.Model, steps: int | None = None) -> None:
    """Makes executions of several steps as long as Keras 3 can run them.

    It has none of several steps where there are replicas, and no shorter one at the end of an epoch
    (of `steps` batches, if that is known and above 0).
    """
    if _IS_KERAS_3:
        has_replicas = model.distribute_strategy.num_replicas_in_sync > 1
        count = math.gcd(1 if has_replicas else max(steps or 0, 0), model.steps_per_execution)
        if count != model.steps_per_execution:
            model.steps_per_execution, model.train_function = count, None


def num_batches(data: keras.utils.Sequence) -> int | None:
    """Returns the number of batches of a Sequence; None if it is unknown."""
    return data.num_batches if _IS_KERAS_3 else len(data)


def track(model: keras.Model, *names: str) -> None:
    """Makes lists and dicts of a model a part of its `tf.train.Checkpoint`, as in Keras 2.15."""
    for name in names if _IS_KERAS_3 else ():
        found = getattr(model, name)
        parts = dict(found) if isinstance(found, dict) else list(found)
        model._track_trackable(tf.__internal__.tracking.wrap(parts), name, overwrite=True)


def lacks_call(model: keras.Model) -> bool:
    """Returns whether Keras 2.15 must call a model before it can save it as a folder."""
    return not _IS_KERAS_3 and model.save_spec() is None


def count_batch(model: keras.Model) -> None:
    """Counts a batch in the graph of a step of one's own; callbacks of Keras 2.15 read it."""
    if not _IS_KERAS_3:
        model._train_counter.assign_add(1)


# === Optimizers


class OptimizerOfBoth(keras.optimizers.Optimizer):
    """An optimizer that does the same with either Keras.

    A schedule is asked for the rate of an update; gradients are summed over replicas before they
    are clipped. A subclass has `update_step(gradient, variable, learning_rate)`.

    Args:
        learning_rate: float or LearningRateSchedule.
        name: str.
        **kwargs: As in `keras.optimizers.Optimizer`. `jit_compile` has no effect with Keras 3.
    """

    def __init__(self, learning_rate: Any, name: str, **kwargs: Any):
        settings = {
            key: value
            for key, value in kwargs.items()
            if key not in _OF_THE_OTHER or (value and key != "jit_compile")
        }
        if _IS_KERAS_3:
            rate = float(learning_rate) if isinstance(learning_rate, int) else learning_rate
            super().__init__(learning_rate=rate, name=name, **settings)
        else:
            super().__init__(name=name, **{"jit_compile": False} | settings)
            self._learning_rate = self._build_learning_rate(learning_rate)

    @property
    def schedule(self) -> Any:
        """The learning rate: a LearningRateSchedule, or a variable with the constant rate."""
        return self._learning_rate

    def number_of(self, variable: Any) -> int:
        """Returns the position of a variable, or of its copy on a replica, among those built."""
        if _IS_KERAS_3:
            return self._get_variable_index(variable)
        return self._index_dict[self._var_key(variable)]

    def _backend_apply_gradients(self, grads, trainable_variables):
        """Called by Keras 3, which would clip the gradients of each replica and then sum them."""
        pairs = self._all_reduce_sum_gradients([*zip(grads, trainable_variables, strict=True)])
        with _summed(self):
            super()._backend_apply_gradients([each for each, _ in pairs], trainable_variables)

    def _get_current_learning_rate(self):
        """Called by Keras 3, which would ask a schedule for the rate of a batch."""
        rate = self._learning_rate
        is_schedule = isinstance(rate, keras.optimizers.schedules.LearningRateSchedule)
        return rate(self.iterations) if is_schedule else super()._get_current_learning_rate()

    def _update_step(self, gradient, variable):
        """Called by Keras 2.15, whose `update_step` has no learning rate."""
        if hasattr(variable, "_unique_id"):  # not while a folder is saved
            self.update_step(gradient, variable, self.learning_rate)

    def _deduplicate_sparse_grad(self, grads):
        """Called by Keras 2.15: repeated rows are summed when the gradient becomes dense.

        It would merge them by `tf.unique`, whose result does not compile for TPUs.
        """
        return grads

    def _apply_weight_decay(self, variables):
        """Does nothing: the decay is a part of the update."""

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        if not _IS_KERAS_3:
            config["learning_rate"] = self._serialize_hyperparameter(self._learning_rate)
        return config


def batches_done(optimizer: Any) -> Any:
    """Returns the number of batches, of which Keras 3 may accumulate several for one update."""
    return optimizer._iterations if _IS_KERAS_3 else optimizer.iterations


def batches_passed(model: keras.Model, steps: int, initial_epoch: int) -> int:
    """Returns the batches of a `fit`, with `steps` in an epoch, that callbacks have restored."""
    if _IS_KERAS_3:
        return (model._initial_epoch or initial_epoch) * steps
    epoch, batch = model._maybe_load_initial_counters_from_ckpt(steps, initial_epoch)
    return epoch * steps + batch


def compile_as_stored(model: keras.Model, config: dict[str, Any], method: Any) -> None:
    """Compiles a loaded model by a method of Keras, from a `config` of either Keras.

    Of the other Keras, only optimizers of this package are restored: those of Keras number their
    moments in another order. Instead of one of these, the model has its default, and a warning says
    so.
    """
    config = dict(config)
    written, optimizer = config.pop("keras"), config.get("optimizer")
    registered = str(optimizer["registered_name"]) if isinstance(optimizer, dict) else ""
    is_other = written.partition(".")[0] != keras.__version__.partition(".")[0]
    if is_other and not registered.startswith("albert_keras>"):
        config.pop("optimizer", None)
        warnings.warn(
            f"The weights are restored, the optimizer is not: Keras {written} wrote it, this is "
            f"Keras {keras.__version__}. Call `compile` before you train the model. Optimizers of "
            "albert_keras, such as Lamb and AdamW, are restored by both.",
            stacklevel=2,
        )
    if not _IS_KERAS_3:
        config.pop("auto_scale_loss", None)
    method(config)


def apply_summed(optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any]) -> None:
    """Updates variables by gradients that are summed over the replicas already.

    They are not scaled by the `loss_scale_factor` of the optimizer.
    """
    if _IS_KERAS_3:
        with _summed(optimizer):
            scaled = map(optimizer.scale_loss, gradients)
            optimizer.apply_gradients([*zip(scaled, variables, strict=True)])
    else:
        pairs = zip(gradients, variables, strict=True)
        optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)


@contextlib.contextmanager
def _summed(optimizer):
    """Context in which an optimizer of Keras 3 takes gradients as sums over the replicas."""
    optimizer._all_reduce_sum_gradients = lambda pairs: pairs
    try:
        yield
    finally:  # each replica ends it
        vars(optimizer).pop("_all_reduce_sum_gradients", None)
