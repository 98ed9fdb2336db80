"""Signatures as a server sees them, and their methods: predict, classify or regress.

TensorFlow 2 always writes `tensorflow/serving/predict`; the other two take `tf.Example`s and
require fixed names and shapes.
"""

from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.saved_model import fingerprinting_utils

from albert_keras.serving.saved_model.server_ops import read_saved_model
from data_pipeline.errors import InputError

#: Method of a request → its name in a SavedModel.
METHOD_NAMES = {
    method: f"tensorflow/serving/{method}" for method in ("predict", "classify", "regress")
}
#: Features of a `tf.Example` that our graphs read, see `TextTaskModel`; not all read `pair`.
EXAMPLE_FEATURES = {"text": tf.string, "pair": tf.string}
#: The graph that servers load.
_TAG = "serve"
#: Prefix of the signatures that only the loader runs.
_INTERNAL = "__saved_model_"


class Signature(NamedTuple):
    """A signature of a SavedModel."""

    name: str
    method: str  #: "predict", "classify" or "regress".
    inputs: dict[str, tf.TensorSpec]  #: The batch is the first dimension; None is free.
    outputs: dict[str, tf.TensorSpec]
    features: dict[str, tf.DType]  #: For "classify" and "regress": `EXAMPLE_FEATURES`.


def read_signatures(folder: Path) -> list[Signature]:
    """Reads the signatures of a version, ordered by name, without running any of it."""
    graphs = read_saved_model(folder).meta_graphs
    graph = next((graph for graph in graphs if graph.meta_info_def.tags == [_TAG]), None)
    if graph is None:
        raise InputError(f"`{folder}` contains no graph with the tag `{_TAG}`.")
    methods = {written: method for method, written in METHOD_NAMES.items()}
    signatures = []
    for name, definition in sorted(graph.signature_def.items()):
        if name.startswith(_INTERNAL):
            continue
        if definition.method_name not in methods:
            raise InputError(
                f"The method of signature `{name}` in `{folder}` must be one of "
                f"{', '.join(methods)}. Received: `{definition.method_name}`."
            )
        method = methods[definition.method_name]
        inputs, outputs = _specs(definition.inputs), _specs(definition.outputs)
        features = {} if method == "predict" else EXAMPLE_FEATURES
        signatures.append(Signature(name, method, inputs, outputs, features))
    return signatures


def set_method_names(folder: Path) -> None:
    """Sets the method of the signatures `classify` and `regress` of a version.

    Without such signatures, nothing is written. Otherwise the fingerprint is updated as well.
    """
    chosen = [
        signature._replace(method=signature.name)
        for signature in read_signatures(folder)
        if signature.name in ("classify", "regress")
    ]
    if not chosen:
        return
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(folder))
    for signature in chosen:
        updater.replace_method_name(signature.name, METHOD_NAMES[signature.method], tags=_TAG)
    updater.save()
    fingerprinting_utils.write_fingerprint(str(folder))


def _specs(tensors):
    return {
        name: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), name)
        for name, info in sorted(tensors.items())
    }
