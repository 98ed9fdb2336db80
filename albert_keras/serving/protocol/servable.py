"""One loaded version of a SavedModel, and the checks that a request to it must pass."""

import inspect
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from albert_keras.serving.protocol.status import invalid, status_of
from albert_keras.serving.saved_model.server_ops import read_saved_model
from data_pipeline.errors import InputError

#: Name of an input or output -> array; strings as an object array of bytes.
Arrays = dict[str, np.ndarray]
#: The signature of requests that name none.
DEFAULT_SIGNATURE = "serving_default"
#: Tags of the graph that servers load.
_TAGS = ["serve"]
#: Names with this prefix are for the loader only.
_INTERNAL = "__saved_model_"
#: Also prints fields that have their default value; protobuf 5 renamed the option.
_WITH_DEFAULTS = next(
    name
    for name in ("including_default_value_fields", "always_print_fields_with_no_presence")
    if name in inspect.signature(MessageToDict).parameters
)


class Servable:
    """A loaded version that answers requests.

    Operations that are not part of TensorFlow, such as the ones in tensorflow-text, must be
    registered before a Servable is created. `signatures` has the SignatureDef of each name that a
    client can call.

    Raises:
        InputError: If the folder contains no SavedModel, or none for servers.
    """

    def __init__(self, folder: Path):
        self.signatures = _read_signatures(folder)
        self._model = tf.saved_model.load(str(folder), tags=_TAGS)

    def definitions(self) -> dict[str, dict]:
        """Returns the signatures as JSON."""
        options = {"preserving_proto_field_name": True, _WITH_DEFAULTS: True}
        return {name: MessageToDict(one, **options) for name, one in self.signatures.items()}

    def signature(self, name: str) -> SignatureDef:
        """Returns the SignatureDef of a name; an empty name means the default signature."""
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise invalid(f"The signature `{name}` was not found. Metadata lists all of them.")
        return self.signatures[name]

    def predict(self, name: str, tensors: Arrays) -> Arrays:
        """Checks and runs a predict request; the name "" is the default signature."""
        self.check_inputs(name, tensors)
        return self.run(name or DEFAULT_SIGNATURE, tensors)

    def classify(self, name: str, examples: list[bytes]):
        """Returns the `classes` and `scores` of some tf.Examples, each an array [B, k] or None."""
        outputs = self._run_examples(name, examples, "classify", {"classes", "scores"})
        return outputs.get("classes"), outputs.get("scores")

    def regress(self, name: str, examples: list[bytes]) -> np.ndarray:
        """Returns the values of some tf.Examples, an array [B] or [B, 1]."""
        return self._run_examples(name, examples, "regress", {"outputs"})["outputs"]

    def check_inputs(self, name: str, tensors: Arrays):
        """Raises StatusError unless tensors have the names, types and shapes of a signature."""
        inputs = self.signature(name).inputs
        if set(tensors) != set(inputs):
            raise invalid(
                f"The inputs must be exactly {', '.join(sorted(inputs))}. Received: "
                f"{', '.join(sorted(tensors)) or 'none'}."
            )
        for key, array in tensors.items():
            dtype, shape = tf.as_dtype(inputs[key].dtype), tf.TensorShape(inputs[key].tensor_shape)
            is_text = array.dtype.kind in "OSU"
            if not (is_text if dtype == tf.string else array.dtype == dtype.as_numpy_dtype):
                received = "string" if is_text else array.dtype.name
                raise invalid(f"The input `{key}` must be {dtype.name}. Received: {received}.")
            if not shape.is_compatible_with(array.shape):
                raise invalid(f"The input `{key}` must be {shape}. Received: {array.shape}.")

    def run(self, name: str, tensors: Arrays) -> Arrays:
        """Runs a signature with checked inputs and returns its outputs."""
        try:
            inputs = {
                key: tf.constant(array.tolist(), tf.string, array.shape)
                if array.dtype == object
                else tf.constant(array)
                for key, array in tensors.items()
            }
            outputs = self._call(name, inputs)
        except Exception as error:
            raise status_of(error) from error
        return {key: tensor.numpy() for key, tensor in outputs.items()}

    def _call(self, name, inputs):
        return self._model.signatures[name](**inputs)

    def _run_examples(self, name, examples, method, allowed):
        signature = self.signature(name)
        outputs = set(signature.outputs)
        if set(signature.inputs) != {"inputs"} or not outputs or not outputs <= allowed:
            raise invalid(f"The signature `{name or DEFAULT_SIGNATURE}` cannot {method} examples.")
        if not examples:
            raise invalid("A request must have at least one example. Received: none.")
        outputs = self.predict(name, {"inputs": np.array(examples, object)})
        for key, array in outputs.items():
            if array.shape[:1] != (len(examples),):
                raise invalid(f"The output `{key}` must have one row per example. It does not.")
        return outputs


def _read_signatures(folder):
    graphs = read_saved_model(folder).meta_graphs
    graph = next((graph for graph in graphs if graph.meta_info_def.tags == _TAGS), None)
    if graph is None:
        tags = "; ".join(",".join(graph.meta_info_def.tags) for graph in graphs)
        raise InputError(
            f"`{folder}` must contain a graph whose only tag is `{_TAGS[0]}`. Received: {tags}. "
            "Export the model again."
        )
    return {
        name: signature
        for name, signature in graph.signature_def.items()
        if not name.startswith(_INTERNAL)
    }
