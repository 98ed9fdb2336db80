"""Exported versions → models that answer."""

import logging

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from albert_keras.serving.local.bounded_run import BoundedRun
from albert_keras.serving.local.exported_versions import read_task
from albert_keras.serving.protocol.servable import Servable, register_text_ops
from albert_keras.serving.protocol.status import StatusError, invalid
from albert_keras.serving.saved_model.server_ops import check_ops
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)


class ServedModel:
    """A loaded version, the only one of its model here; see `protocol.routes.answer`.

    A SavedModel is a program: what reaches out of it is refused before it is loaded.

    Args:
        export: ExportedVersion.
        limits: Limits.

    Attributes:
        name: str.
        version: int.

    Raises:
        InputError: If it is damaged or uses operations that are not allowed.
    """

    def __init__(self, export, limits):
        self.name, self.version, folder = export
        self._kind, self._task = read_task(folder)
        check_ops(folder)
        register_text_ops()
        try:
            self._servable = Servable(folder, lambda run: BoundedRun(run, limits))
        except (OSError, ValueError, tf.errors.OpError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"`{folder}` is damaged: {error}.") from error

    def servable(self, version=None, label=None):
        """Returns (version, Servable); StatusError if another one is asked for."""
        if label is not None:
            raise invalid(f"Unrecognized servable version label: {label}")
        if version not in (None, self.version):
            wanted = f"Specific({self.name}, {version})"
            raise StatusError("NOT_FOUND", f"Servable not found for request: {wanted}")
        return self.version, self._servable

    def status(self, version=None, label=None):
        """Returns [(version, state, None)]; StatusError if another one is asked for."""
        if label is not None:
            self.servable(label=label)
        if version not in (None, self.version):
            message = f"Could not find version {version} of model {self.name}"
            raise StatusError("NOT_FOUND", message)
        return [(self.version, "AVAILABLE", None)]

    def describe(self):
        """Returns what a page has to know of the model, plain JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "signatures": {
                name: {
                    "method": signature.method_name.rpartition("/")[2],
                    "inputs": _describe(signature.inputs),
                    "outputs": _describe(signature.outputs),
                }
                for name, signature in sorted(self._servable.asked.items())
            },
            "kind": self._kind,
            "task": self._task,
        }

    def warm_up(self):
        """Asks each signature once, as the first request takes longer than later ones."""
        for name, signature in self._servable.asked.items():
            try:
                tensors = {alias: _sample(info) for alias, info in signature.inputs.items()}
                self._servable.predict(name, tensors)
            except StatusError as error:
                # Models of others may want something else than a sample.
                logger.debug("`%s` of `%s` is not warm: %s", name, self.name, error.message)


def _describe(infos):
    """Returns dict of name -> [dtype, shape], as metadata names them; -1 is free."""
    return {
        name: [
            types_pb2.DataType.Name(info.dtype),
            None
            if info.tensor_shape.unknown_rank
            else [size.size for size in info.tensor_shape.dim],
        ]
        for name, info in sorted(infos.items())
    }


def _sample(info):
    dtype, shape = tf.as_dtype(info.dtype), tf.TensorShape(info.tensor_shape)
    sizes = [1] if shape.rank is None else [size or 1 for size in shape]
    # No text and no features at all is what every export takes; ones are in range everywhere.
    return tf.fill(sizes, "" if dtype == tf.string else tf.cast(1, dtype)).numpy()
