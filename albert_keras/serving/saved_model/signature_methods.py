"""Signatures as a server sees them, and the method each is for: predict, classify or regress.

TensorFlow 2 writes `tensorflow/serving/predict` into all; the other two take `tf.Example`s and are
bound to fixed names and shapes.
"""

import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from tensorflow.python.saved_model import fingerprinting_utils

from albert_keras.serving.saved_model.server_ops import read_saved_model
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

#: Method of a request → how a SavedModel writes it.
METHOD_NAMES = {
    method: f"tensorflow/serving/{method}" for method in ("predict", "classify", "regress")
}
#: The graph that servers load.
_TAG = "serve"
#: What starts the names of signatures that only the loader runs.
_INTERNAL = "__saved_model_"


class Signature(NamedTuple):
    """A signature of a SavedModel.

    Attributes:
        name: str.
        method: str. "predict", "classify" or "regress".
        inputs: dict of name -> tf.TensorSpec. None in a shape is free, the batch first.
        outputs: dict of name -> tf.TensorSpec.
        features: dict of name -> tf.DType. For "classify" and "regress": what the model reads out
            of a `tf.Example`.
    """

    name: str
    method: str
    inputs: dict[str, tf.TensorSpec]
    outputs: dict[str, tf.TensorSpec]
    features: dict[str, tf.DType]


def read_signatures(folder):
    """Reads the signatures of a SavedModel without running any of it.

    Args:
        folder: str or Path. Of one version, with `saved_model.pb`.

    Returns:
        list of Signature, by name.

    Raises:
        InputError: If there is no SavedModel, or a signature has a method that servers do not know,
            or features have names that are not constants.
    """
    graphs = read_saved_model(folder).meta_graphs
    graph = next((graph for graph in graphs if graph.meta_info_def.tags == [_TAG]), None)
    if graph is None:
        raise InputError(f"`{folder}` should hold a graph with the tag `{_TAG}`. Received: none.")
    methods = {written: method for method, written in METHOD_NAMES.items()}
    features = _example_features(graph.graph_def)
    signatures = []
    for name, definition in sorted(graph.signature_def.items()):
        if name.startswith(_INTERNAL):
            continue
        if definition.method_name not in methods:
            raise InputError(
                f"The method of signature `{name}` in `{folder}` should be one of "
                f"{', '.join(methods)}. Received: `{definition.method_name}`."
            )
        method = methods[definition.method_name]
        signatures.append(
            Signature(
                name,
                method,
                _specs(definition.inputs),
                _specs(definition.outputs),
                {} if method == "predict" else features,
            )
        )
    return signatures


def set_method_names(folder):
    """Gives the signatures `classify` and `regress` of a SavedModel the method of that name.

    Where there is neither, nothing is written. The fingerprint beside is made anew.

    Args:
        folder: str or Path. Of one version, with `saved_model.pb`.

    Returns:
        list of str. The signatures that have a method of their own now.

    Raises:
        InputError: If a signature of these names is not what its method asks for, see
            `check_signature`.
    """
    folder = Path(folder)
    chosen = [
        signature._replace(method=signature.name)
        for signature in read_signatures(folder)
        if signature.name in ("classify", "regress")
    ]
    for signature in chosen:
        check_signature(signature)
    if not chosen:
        return []
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(folder))
    for signature in chosen:
        updater.replace_method_name(signature.name, METHOD_NAMES[signature.method], tags=_TAG)
    # The updater writes in place; a model cut off half-way must not get the name.
    with tempfile.TemporaryDirectory(dir=folder) as staging:
        updater.save(staging)
        with whole_file(folder / "saved_model.pb") as temporary:
            os.replace(Path(staging) / "saved_model.pb", temporary)
    fingerprinting_utils.write_fingerprint(str(folder))
    return [signature.name for signature in chosen]


def check_signature(signature):
    """Makes sure that a signature has the inputs and outputs its method asks for.

    - classify: one input `inputs`, strings [batch], each a serialized `tf.Example`; outputs
      `classes`, strings [batch, k], `scores`, float32 [batch, k], or both, and no other.
    - regress: the same input; one output `outputs`, float32 [batch] or [batch, 1].
    - predict: anything.

    Args:
        signature: Signature.

    Raises:
        InputError: If it has not; it names the signature and the rule.
    """
    if signature.method == "predict":
        return
    one_batch = list(signature.inputs) == ["inputs"] and _is(
        signature.inputs["inputs"], tf.string, [None]
    )
    _require(signature, one_batch, "have one input: `inputs`, string [None]", signature.inputs)
    outputs = signature.outputs
    if signature.method == "regress":
        value = outputs.get("outputs")
        fits = list(outputs) == ["outputs"] and any(
            _is(value, tf.float32, shape) for shape in ([None], [None, 1])
        )
        rule = "have one output: `outputs`, float32 [None] or [None, 1]"
        _require(signature, fits, rule, outputs)
        return
    dtypes = {"classes": tf.string, "scores": tf.float32}
    fits = 0 < len(outputs) and all(
        name in dtypes and _is(spec, dtypes[name], [None, spec.shape[-1] if spec.shape else None])
        for name, spec in outputs.items()
    )
    if fits and len(outputs) == 2:
        fits = outputs["classes"].shape.is_compatible_with(outputs["scores"].shape)
    rule = "have the outputs `classes`, string [None, k], or `scores`, float32 [None, k], or both"
    _require(signature, fits, rule, outputs)


def _require(signature, holds, rule, specs):
    if not holds:
        received = ", ".join(
            f"`{name}`, {spec.dtype.name} {spec.shape}" for name, spec in sorted(specs.items())
        )
        raise InputError(
            f"Signature `{signature.name}`, of the method {signature.method}, should {rule}. "
            f"Received: {received}."
        )


def _is(spec, dtype, shape):
    """Whether a spec is just this; None is a free dimension, not any."""
    return spec.dtype == dtype and spec.shape.rank == len(shape) and spec.shape.as_list() == shape


def _specs(tensors):
    return {
        name: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), name)
        for name, info in sorted(tensors.items())
    }


def _example_features(graph):
    """Returns what a GraphDef reads out of `tf.Example`s, a dict of name -> tf.DType."""
    features = {}
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        constants = {node.name: node.attr["value"].tensor for node in nodes if node.op == "Const"}
        for node in nodes:
            if node.op != "ParseExampleV2":
                continue
            keys = node.input[2:5]
            types = (node.attr[name] for name in ("sparse_types", "Tdense", "ragged_value_types"))
            for tensor, dtypes in zip(keys, types, strict=True):
                if tensor.split(":")[0] not in constants:
                    raise InputError(f"The names of features in `{node.name}` should be constants.")
                names = tf.make_ndarray(constants[tensor.split(":")[0]]).tolist()
                for name, dtype in zip(names, dtypes.list.type, strict=True):
                    features[name.decode()] = tf.as_dtype(dtype)
    return features
