"""The tensors of a checkpoint: their names, how they are read, written and assigned."""

import numpy as np
import tensorflow as tf

from albert_keras.interop.checkpoint_tensors import UNREADABLE
from data_pipeline.errors import InputError

_SLOTS = {"m": "adam_m", "v": "adam_v"}


def load_weights(prefix, variables):
    """Assigns the tensors of a checkpoint to variables, all or none.

    Args:
        prefix: str. As TensorFlow's checkpoint readers take it.
        variables: dict of tensor name -> variable.

    Raises:
        InputError: With all tensors that are missing or have another shape or type.
    """
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        problems = []
        for name, variable in variables.items():
            if list(variable.shape) != shapes.get(name):
                found = shapes.get(name, "nothing")
                problems.append(f"{name}: {list(variable.shape)} wanted, {found} found")
            elif variable.dtype.base_dtype != types[name]:
                wanted, found = variable.dtype.base_dtype.name, types[name].name
                problems.append(f"{name}: {wanted} wanted, {found} found")
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(f"`{prefix}` does not fit the model:\n  {listing}")
        values = {name: reader.get_tensor(name) for name in variables}
    except UNREADABLE as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`{prefix}` cannot be read: {error}") from error
    for name, variable in variables.items():
        variable.assign(values[name])


def weight_names(model):
    """Names a model's weights as checkpoints do: dict of name -> variable."""
    return {variable.name.split(":")[0]: variable for variable in model.weights}


def training_variables(model, optimizer=None):
    """Names a model's weights, and their moments if there is an optimizer, as checkpoints do.

    Args:
        model: keras.Model.
        optimizer: keras.optimizers.legacy.Optimizer or None. Its slots have to be there already.

    Returns:
        dict of tensor name -> variable.
    """
    weights = weight_names(model)
    variables = dict(weights)
    for name, variable in weights.items() if optimizer is not None else ():
        if variable.trainable:
            for slot, suffix in _SLOTS.items():
                variables[f"{name}/{suffix}"] = optimizer.get_slot(variable, slot)
    return variables


def read_variables(variables):
    """Reads the values of variables: dict of name -> array.

    With several workers all of them have to call this, even if one alone saves: a variable that
    each keeps for itself, such as a metric's, is summed over them.
    """
    return {
        name: variable.numpy() if hasattr(variable, "numpy") else np.asarray(variable)
        for name, variable in variables.items()
    }
