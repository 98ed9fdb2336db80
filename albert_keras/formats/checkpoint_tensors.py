"""Reads the tensors of TensorFlow checkpoints without a model, by the names of the reference."""

import re

import numpy as np
import tensorflow as tf

from albert_keras.runs.tensors import UNREADABLE
from data_pipeline.errors import InputError

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
