"""Tensors of a checkpoint: their names, and how they are read, assigned and written."""

import errno
import glob
import os
import re
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_keras.keras_versions import name_of
from data_pipeline.errors import InputError
from data_pipeline.limits import check_regular_file

#: What TensorFlow's readers raise for damaged bytes: a truncated data file is an IndexError.
UNREADABLE = (tf.errors.OpError, ValueError, IndexError, RuntimeError)
_SLOTS = {"m": "adam_m", "v": "adam_v"}
_HUB = "module/"  # the prefix of all names in TensorFlow Hub's first format
_MOMENTS = re.compile(r".*/(adam|lamb)_[mv]")
#: Other training state: the step, and the slots of TensorFlow's own optimizers.
_TRAINING = re.compile(r"global_step|training/.*|beta[12]_power|.*/(Adam|Adam_1|Momentum)")


class CheckpointTensors:
    """Tensors of a TensorFlow checkpoint, by the names of the reference.

    The `module/` of TensorFlow Hub is left out.

    `shapes` is a dict of name to list of int, `types` of name to tf.DType. InputError if the
    checkpoint cannot be read, or two tensors have the same name without `module/`.
    """

    def __init__(self, prefix):
        self._prefix = prefix
        # TensorFlow would wait for a pipe for ever.
        for path in glob.glob(f"{glob.escape(os.fspath(prefix))}.*"):
            check_regular_file(path)
        try:
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            types = self._reader.get_variable_to_dtype_map()
        except UNREADABLE as error:
            raise InputError(f"`{prefix}` is not a readable checkpoint: {error}") from error
        self._stored = {name.removeprefix(_HUB): name for name in shapes}
        twice = [name for name in self._stored if {name, _HUB + name} <= shapes.keys()]
        if twice:
            raise InputError(f"`{prefix}` contains tensors with and without {_HUB}: {twice}.")
        self.shapes = {name: shapes[stored] for name, stored in self._stored.items()}
        self.types = {name: types[stored] for name, stored in self._stored.items()}

    def read(self, name: str) -> np.ndarray:
        """Reads a tensor; InputError if its bytes are damaged."""
        try:
            return self._reader.get_tensor(self._stored[name])
        except UNREADABLE as error:
            raise InputError(f"`{self._prefix}`: {name} cannot be read: {error}") from error


def is_moment(name: str) -> bool:
    """Returns whether a name belongs to an optimizer's moment of a weight."""
    return _MOMENTS.fullmatch(name) is not None


def is_training_state(name: str) -> bool:
    """Returns whether a tensor is needed for training only: moments, the step."""
    return is_moment(name) or _TRAINING.fullmatch(name) is not None


def misfits_of(tensors: CheckpointTensors, variables: dict[str, tf.Variable]) -> list[str]:
    """Returns the variables whose tensor is missing or has another shape or type."""
    problems = []
    for name, variable in variables.items():
        shape, type = tensors.shapes.get(name, "nothing"), tf.as_dtype(variable.dtype)
        if list(variable.shape) != shape:
            problems.append(f"{name}: expected {list(variable.shape)}, found {shape}")
        elif tensors.types[name] != type:
            problems.append(f"{name}: expected {type.name}, found {tensors.types[name].name}")
    return problems


def assign_all(tensors: CheckpointTensors, variables: dict[str, tf.Variable], source: str):
    """Assigns tensors to all variables, or to none.

    Raises:
        InputError: With all variables whose tensor is missing or has another shape or type.
    """
    if problems := misfits_of(tensors, variables):
        listing = "\n  ".join(problems)
        raise InputError(f"`{source}` does not fit the model:\n  {listing}")
    values = {name: tensors.read(name) for name in variables}
    for name, variable in variables.items():
        variable.assign(values[name])


def weight_names(model) -> dict[str, tf.Variable]:
    """Names a model's weights as checkpoints do."""
    return {name_of(variable): variable for variable in model.weights}


def training_variables(model, optimizer) -> dict[str, tf.Variable]:
    """Names a model's weights, and the moments of its optimizer, which must exist already."""
    variables = weight_names(model)
    # Of a layer that is frozen, no variable.
    trained = {name_of(variable) for variable in model.trainable_variables}
    moments = {
        f"{name}/{_SLOTS[slot]}": moment
        for name, variable in variables.items()
        if name in trained
        for slot, moment in optimizer.moments_of(variable).items()
    }
    return variables | moments


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
