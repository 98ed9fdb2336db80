"""TensorFlow checkpoints: their tensors by name, read and written, without a model."""

import errno
import os
import re

import tensorflow as tf

from data_pipeline.errors import InputError

#: What TensorFlow's readers raise for damaged bytes: a data file cut short is an IndexError.
UNREADABLE = (tf.errors.OpError, ValueError, IndexError, RuntimeError)
_HUB = "module/"  # what TensorFlow Hub puts before all names
_MOMENTS = re.compile(r".*/(adam|lamb)_[mv]")
#: What else training leaves: its step, and the slots of TensorFlow's own optimizers.
_TRAINING = re.compile(r"global_step|training/.*|beta[12]_power|.*/(Adam|Adam_1|Momentum)")


class CheckpointTensors:
    """Tensors of a TensorFlow checkpoint.

    Args:
        prefix: str. As TensorFlow's checkpoint readers take it.

    Attributes:
        shapes: dict of str to list of int. By name, without the `module/` of TensorFlow Hub.
        types: dict of str to tf.DType.

    Raises:
        InputError: If it cannot be read, or two tensors have one name without `module/`.
    """

    def __init__(self, prefix):
        self._prefix = prefix
        try:
            self._reader = tf.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
            types = self._reader.get_variable_to_dtype_map()
        except UNREADABLE as error:
            raise InputError(f"`{prefix}` should be a TensorFlow checkpoint: {error}") from error
        self._stored = {name.removeprefix(_HUB): name for name in shapes}
        twice = [name for name in self._stored if {name, _HUB + name} <= shapes.keys()]
        if twice:
            raise InputError(f"`{prefix}` holds tensors with and without {_HUB}: {twice}.")
        self.shapes = {name: shapes[stored] for name, stored in self._stored.items()}
        self.types = {name: types[stored] for name, stored in self._stored.items()}

    def read(self, name):
        """Reads a tensor: array; InputError if its bytes are not what was saved."""
        try:
            return self._reader.get_tensor(self._stored[name])
        except UNREADABLE as error:
            raise InputError(f"`{self._prefix}`: {name} cannot be read: {error}") from error


def is_moment(name):
    """Tells whether a name is that of an optimizer's moment of a weight."""
    return _MOMENTS.fullmatch(name) is not None


def is_training_state(name):
    """Tells whether a name is that of something only training needs: moments, the step."""
    return is_moment(name) or _TRAINING.fullmatch(name) is not None


def write_tensors(prefix, tensors):
    """Writes tensors (dict of name -> array) as a checkpoint that TensorFlow 1 and 2 read.

    Raises:
        OSError: If it cannot be written.
    """
    try:
        with tf.device("CPU:0"):  # where else there is a GPU, all would be copied there and back
            tf.raw_ops.SaveV2(
                prefix=os.fspath(prefix),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=list(tensors.values()),
            )
    except tf.errors.OpError as error:
        # TensorFlow passes on the words of the operating system, and not its number.
        for number in errno.errorcode:
            if f"; {os.strerror(number)}" in error.message:
                raise OSError(number, os.strerror(number), os.fspath(prefix)) from error
        raise
