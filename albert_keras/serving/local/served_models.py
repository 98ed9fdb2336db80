"""Loaded exports that answer requests within the limits of a local server."""

import logging
import math

import tensorflow as tf
import tensorflow_text  # noqa: F401 - registers the operations of the tokenizers

from albert_keras.serving.client.rest_client import signatures_from_json
from albert_keras.serving.local.blank_texts import check_not_blank
from albert_keras.serving.local.exported_versions import ExportedVersion, read_task
from albert_keras.serving.local.limits import Limits
from albert_keras.serving.protocol.rest_routes import unknown_label, unknown_version
from albert_keras.serving.protocol.servable import DEFAULT_SIGNATURE, Servable
from albert_keras.serving.protocol.status import StatusError, invalid
from albert_keras.serving.sample_texts import sample_texts
from albert_keras.serving.saved_model.loading import check_saved_model, reporting_damage
from albert_keras.serving.saved_model.time_limit import time_limit
from albert_keras.tasks.kinds import KINDS, SIMILARITY
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)


class ServedModel:
    """A model with one loaded version; see `rest_routes.answer`.

    Raises:
        InputError: If the export is damaged or uses operations that are not allowed.
    """

    def __init__(self, export: ExportedVersion, limits: Limits):
        self.name, self.version, folder = export
        self._kind, self._task = read_task(folder)
        self._samples = sample_texts(folder)
        check_saved_model(folder)  # before it is loaded, as a SavedModel is a program
        with reporting_damage(folder):
            is_similarity = self._task is not None and self._task["kind"] == SIMILARITY.name
            self._servable = _BoundedServable(folder, limits, requires_pair=is_similarity)

    def servable(self, version: int | None = None, label: str | None = None):
        """Returns (version, Servable); StatusError for a version or label that is not served."""
        if label is not None:
            raise unknown_label(self.name, label)
        if version not in (None, self.version):
            raise unknown_version(self.name, version)
        return self.version, self._servable

    def status(self, version=None, label=None):
        """Returns [(version, state, None)]; StatusError as `servable`."""
        return [(self.servable(version, label)[0], "AVAILABLE", None)]

    def describe(self) -> dict:
        """Returns the description of the model that the page needs, plain JSON."""
        signatures = signatures_from_json(self._servable.definitions())
        task = self._task
        if task is not None:
            kind = KINDS.get(task["kind"])  # None for a kind of a later release
            task = task | {"finds_spans": kind is not None and kind.finds_spans}
        return {
            "name": self.name,
            "version": self.version,
            "signatures": {name: one._asdict() for name, one in sorted(signatures.items())},
            "kind": self._kind,
            "task": task,
            "samples": self._samples._asdict(),
        }

    def warm_up(self):
        """Runs each signature once, because the first run takes longer than later ones."""
        for name, signature in self._servable.signatures.items():
            try:
                tensors = {alias: _sample(info) for alias, info in signature.inputs.items()}
                # Without the checks of a request, as the sample is blank.
                self._servable.run(name, tensors)
            except StatusError as error:
                # Models that we did not export may not accept the sample.
                logger.debug("no warm-up of `%s` of `%s`: %s", name, self.name, error.message)


class _BoundedServable(Servable):
    """A Servable that refuses blank texts, and limits requests: the rows, the values of the answer,
    and the time, as a model is a program that may never end."""

    def __init__(self, folder, limits, requires_pair):
        with time_limit(limits.computing_seconds, folder):
            super().__init__(folder)
        self._folder, self._limits, self._requires_pair = folder, limits, requires_pair

    def check_inputs(self, name, tensors):
        super().check_inputs(name, tensors)
        signature = name or DEFAULT_SIGNATURE
        check_not_blank(signature, tensors, self.signatures, self._requires_pair)

    def run(self, name, tensors):
        limits = self._limits
        for alias, array in tensors.items():
            # The last dimension of numbers is the tokens of a text.
            is_text = array.dtype.kind in "OSU"
            rows = array.size if is_text else math.prod(array.shape[:-1])
            if rows > limits.rows:
                raise invalid(
                    f"The input `{alias}` must have at most {limits.rows} texts. Received: {rows}."
                )
        outputs = super().run(name, tensors)
        values = sum(array.size for array in outputs.values())
        if values > limits.answer_values:
            raise invalid(
                f"The answer must have at most {limits.answer_values} values. It has {values}: "
                "send fewer or shorter texts."
            )
        return outputs

    def _call(self, name, inputs):
        rows = max((math.prod(tensor.shape[:1]) for tensor in inputs.values()), default=1)
        try:
            with time_limit(self._limits.computing_seconds * max(rows, 1), self._folder):
                return super()._call(name, inputs)
        except InputError as error:  # the request is not wrong
            raise StatusError("DEADLINE_EXCEEDED", str(error)) from error


def _sample(info):
    dtype, shape = tf.as_dtype(info.dtype), tf.TensorShape(info.tensor_shape)
    sizes = [1] if shape.rank is None else [size or 1 for size in shape]
    # Every export accepts an empty text, an example without features, and the number 1.
    return tf.fill(sizes, "" if dtype == tf.string else tf.cast(1, dtype)).numpy()
