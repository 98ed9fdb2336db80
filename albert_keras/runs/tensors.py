"""Tensors of a checkpoint: their names, and how they are read, assigned and written."""

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from data_pipeline.errors import InputError

#: What TensorFlow's readers raise for damaged bytes: a truncated data file is an IndexError.
UNREADABLE = (tf.errors.OpError, ValueError, IndexError, RuntimeError)
_SLOTS = {"m": "adam_m", "v": "adam_v"}


def load_weights(prefix: str, variables: dict[str, tf.Variable]):
    """Assigns the tensors of a checkpoint to variables, all or none.

    Raises:
        InputError: With all tensors that are missing or have another shape or type.
    """
    problems = misfits_of(prefix, variables)
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(f"`{prefix}` does not fit the model:\n  {listing}")
    with _naming(prefix):
        reader = tf.train.load_checkpoint(prefix)
        values = {name: reader.get_tensor(name) for name in variables}
    for name, variable in variables.items():
        variable.assign(values[name])


def misfits_of(prefix: str, variables: dict[str, tf.Variable]) -> list[str]:
    """Returns the tensors of a checkpoint that are missing or have another shape or type."""
    with _naming(prefix):
        reader = tf.train.load_checkpoint(prefix)
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    problems = []
    for name, variable in variables.items():
        if list(variable.shape) != shapes.get(name):
            found = shapes.get(name, "nothing")
            problems.append(f"{name}: expected {list(variable.shape)}, found {found}")
        elif variable.dtype.base_dtype != types[name]:
            expected, found = variable.dtype.base_dtype.name, types[name].name
            problems.append(f"{name}: expected {expected}, found {found}")
    return problems


@contextlib.contextmanager
def _naming(prefix):
    try:
        yield
    except UNREADABLE as error:
        raise InputError(f"`{prefix}` cannot be read: {error}") from error


def weight_names(model) -> dict[str, tf.Variable]:
    """Names a model's weights as checkpoints do."""
    return _named(model.weights)


def training_variables(model, optimizer, weights=None) -> dict[str, tf.Variable]:
    """Names a model's weights, and the moments of its optimizer, which must exist already.

    The `weights` are those to name; None stands for all.
    """
    variables = _named(model.weights if weights is None else weights)
    trained = _named(model.trainable_variables)  # of a layer that is frozen, no variable
    moments = {
        f"{name}/{_SLOTS[slot]}": moment
        for name, variable in variables.items()
        if name in trained
        for slot, moment in optimizer.moments_of(variable).items()
    }
    return variables | moments


def _named(weights):
    return {variable.name.split(":")[0]: variable for variable in weights}


def read_variables(variables: dict) -> dict[str, np.ndarray]:
    """Reads the values of variables.

    Each variable must have the same value on all workers, see `_state_variable` in
    `models/step_state.py`, so that the worker that saves can read it alone.
    """
    return {
        name: variable.numpy() if hasattr(variable, "numpy") else np.asarray(variable)
        for name, variable in variables.items()
    }


def write_tensors(prefix: str | Path, tensors: dict[str, np.ndarray]):
    """Writes a checkpoint that TensorFlow 1 and 2 read; OSError if it cannot be written."""
    try:
        with tf.device("CPU:0"):  # otherwise all tensors are copied to a GPU and back
            tf.raw_ops.SaveV2(
                prefix=os.fspath(prefix),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=list(tensors.values()),
            )
    except tf.errors.OpError as error:
        # TensorFlow passes on the operating system's message, but not its number.
        for number in errno.errorcode:
            if f"; {os.strerror(number)}" in error.message:
                raise OSError(number, os.strerror(number), os.fspath(prefix)) from error
        raise
