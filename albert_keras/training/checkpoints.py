"""Checkpoints under the tensor names of google-research/albert, whole or not at all.

`<run>/checkpoints/step-00000500/model.ckpt` is a prefix that TensorFlow 1 and 2 read. It holds each
weight under its name, its two moments as `<name>/adam_m` and `<name>/adam_v`, and `global_step`.
"""

import logging
import math
import os
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow import keras

from data_pipeline.errors import InputError
from data_pipeline.files import whole_folder

logger = logging.getLogger(__name__)

_PREFIX = "model.ckpt"
_SLOTS = {"m": "adam_m", "v": "adam_v"}


class CheckpointFolder:
    """The checkpoints of one run.

    Args:
        path: str or Path. Folder that holds one folder per checkpoint.
        keep: int. How many of the newest stay.
    """

    def __init__(self, path, keep=3):
        self.path = Path(path)
        self.keep = keep

    def steps(self):
        """Lists the steps that have a checkpoint, ascending."""
        names = [path.name for path in self.path.glob("step-*")] if self.path.is_dir() else []
        return sorted(int(name[5:]) for name in names if re.fullmatch(r"step-\d{8}", name))

    def prefix(self, step):
        """Returns the checkpoint's prefix, as TensorFlow's readers take it."""
        return str(self.path / f"step-{step:08d}" / _PREFIX)

    def latest(self):
        """Returns the newest step.

        Raises:
            InputError: If there is no checkpoint.
        """
        steps = self.steps()
        if not steps:
            raise InputError(f"`{self.path}` holds no checkpoint yet.")
        return steps[-1]

    def save(self, step, model, optimizer):
        """Writes weights, moments and step, then drops the oldest checkpoints."""
        tensors = {"global_step": np.int64(step)}
        for name, variable in _named_variables(model, optimizer).items():
            tensors[name] = variable.numpy()
        with whole_folder(Path(self.prefix(step)).parent) as folder:
            tf.raw_ops.SaveV2(
                prefix=os.fspath(folder / _PREFIX),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=list(tensors.values()),
            )
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(Path(self.prefix(old)).parent)

    def restore(self, step, model, optimizer=None):
        """Reads a checkpoint into a model, and into its optimizer if one is given.

        Raises:
            InputError: If a tensor is missing, has another shape, or the checkpoint is damaged.
        """
        load_weights(self.prefix(step), _named_variables(model, optimizer))
        if optimizer is not None:
            optimizer.iterations.assign(step)


def load_weights(prefix, variables):
    """Assigns the tensors of a checkpoint to variables, all or none.

    Args:
        prefix: str. As TensorFlow's checkpoint readers take it.
        variables: dict of tensor name -> variable.

    Raises:
        InputError: With all tensors that are missing or misshapen.
    """
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
        problems = [
            f"{name}: {list(variable.shape)} wanted, {shapes.get(name, 'nothing')} found"
            for name, variable in variables.items()
            if list(variable.shape) != shapes.get(name)
        ]
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(f"`{prefix}` does not fit the model:\n  {listing}")
        values = {name: reader.get_tensor(name) for name in variables}
    except (tf.errors.OpError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`{prefix}` cannot be read: {error}") from error
    for name, variable in variables.items():
        variable.assign(values[name])


def weight_names(model):
    """Names a model's weights as checkpoints do: dict of name -> variable."""
    return {variable.name.split(":")[0]: variable for variable in model.weights}


def _named_variables(model, optimizer):
    variables = weight_names(model)
    if optimizer is not None:
        for name, variable in list(variables.items()):
            for slot, suffix in _SLOTS.items():
                variables[f"{name}/{suffix}"] = optimizer.get_slot(variable, slot)
    return variables


class SaveCheckpoints(keras.callbacks.Callback):
    """Saves each so many steps and at the end; SIGTERM and Ctrl-C finish the step and save first.

    A second signal ends the process at once.

    Args:
        folder: CheckpointFolder.
        every: int. Steps between checkpoints.
        first_step: int. Steps done before this `fit`.
        last_step: int. The step that ends the run.
        time_limit: float or None. Seconds after which `fit` ends early.

    Attributes:
        step, saved: int. Steps done, and the newest one saved.
        stopped_by: int or None. The signal that ended `fit` early.
    """

    def __init__(self, folder, every, first_step, last_step, time_limit=None):
        super().__init__()
        self.folder, self.every, self.last_step = folder, every, last_step
        self.step = self.saved = first_step
        self.stopped_by = None
        self._time_limit = math.inf if time_limit is None else time_limit
        self._begun = time.monotonic()
        self._handlers = {}

    def on_train_begin(self, logs=None):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._handlers[number] = signal.signal(number, self._on_signal)

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        stop = self.stopped_by or time.monotonic() > self._begun + self._time_limit
        if stop or self.step % self.every == 0 or self.step == self.last_step:
            self._save()
        self.model.stop_training = bool(stop)

    def on_train_end(self, logs=None):
        self.restore_signals()

    def restore_signals(self):
        """Hands the signals back to whom they belonged to."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers = {}

    def _save(self):
        self.folder.save(self.step, self.model.model, self.model.optimizer)
        self.saved = self.step
        logger.info("checkpoint of step %d saved", self.step)

    def _on_signal(self, number, frame):
        logger.warning("stop asked: finishing the step and saving (again: stop at once)")
        self.stopped_by = number
        self.restore_signals()
