"""One loaded version of a SavedModel and the checks the server makes of requests to it."""

import numpy as np
import tensorflow as tf

from albert_keras.serving.protocol.status import StatusError, invalid, of_tensorflow
from albert_keras.serving.saved_model.server_ops import read_saved_model
from data_pipeline.errors import InputError

METHODS = {
    "classify": "tensorflow/serving/classify",
    "regress": "tensorflow/serving/regress",
}


#: The graph that servers load.
_TAGS = ["serve"]
#: What starts the names of signatures that only the loader runs.
INTERNAL = "__saved_model_"


def register_text_ops():
    """Makes the operations of the tokenizers of our exports known to this process."""
    import tensorflow_text  # noqa: F401


class Servable:
    """A version that answers.

    Args:
        folder: Path. Of the version.
        merge: function or None. Takes the function that runs a request (signature, names of
            outputs, dict of arrays -> dict of arrays) and returns something with `run` and `close`
            that merges requests; None runs each by itself.
        check_methods: bool. Whether a signature must have the right `method_name`, as with
            `--enable_signature_method_name_check`.

    Attributes:
        signatures: dict of name -> SignatureDef, as the file has them.
        asked: dict of name -> SignatureDef. Those that answer, as some are for the loader alone.

    Raises:
        InputError: If the folder holds no SavedModel, or none for servers.
    """

    def __init__(self, folder, merge=None, check_methods=False):
        self.signatures = _read_signatures(folder)
        self.asked = {
            name: one for name, one in self.signatures.items() if not name.startswith(INTERNAL)
        }
        self._model = tf.saved_model.load(str(folder), tags=_TAGS)
        self._check_methods = check_methods
        self._batcher = merge(self._run) if merge else None

    def close(self):
        if self._batcher:
            self._batcher.close()

    def inputs_of(self, name):
        """Returns the inputs of a signature as REST looks them up, dict of alias -> TensorInfo."""
        name = name or "serving_default"
        if name not in self.asked:
            raise invalid(f'Serving signature name: "{name}" not found in signature def')
        return self.asked[name].inputs

    def predict(self, name, tensors, output_filter=(), timeout=30.0):
        """Returns the outputs of a predict request, dict of alias -> array.

        Args:
            name: str. Of the signature; "" takes the default one.
            tensors: dict of alias -> array.
            output_filter: list of str. Outputs to return; all where it is empty.
            timeout: float. Seconds.
        """
        name = name or "serving_default"
        if name not in self.asked:
            raise StatusError("FAILED_PRECONDITION", f'Serving signature key "{name}" not found.')
        signature = self.asked[name]
        missing, extra = set(signature.inputs) - set(tensors), set(tensors) - set(signature.inputs)
        if missing or extra:
            raise invalid(
                f"Request inputs do not match required inputs for model `{name}`. "
                f"Send extra: {{{','.join(sorted(extra))}}}. "
                f"Missing but required: {{{','.join(sorted(missing))}}}."
            )
        for position, alias in enumerate(output_filter):
            if alias not in signature.outputs:
                raise invalid(f"output tensor alias not found in signature: {alias}")
            if alias in output_filter[:position]:
                raise invalid(f"duplicate output tensor alias: {alias}")
        for alias, array in tensors.items():
            _check_tensor(alias, array, signature.inputs[alias])
        wanted = tuple(output_filter) or tuple(signature.outputs)
        if self._batcher:
            return self._batcher.run(name, wanted, tensors, timeout)
        return self._run(name, wanted, tensors)

    def classify(self, name, examples, timeout=30.0):
        """Returns `classes` and `scores`, each an array [B, k] or None."""
        outputs = self._ask_examples("classify", name, examples, timeout)
        classes, scores = outputs.get("classes"), outputs.get("scores")
        for key, array in (("classes", classes), ("scores", scores)):
            if array is not None and (array.ndim != 2 or len(array) != len(examples)):
                raise invalid(f"Expected Tensor shape: [{len(examples)} ?] for {key}")
        return classes, scores

    def regress(self, name, examples, timeout=30.0):
        """Returns an array [B] or [B, 1]."""
        values = self._ask_examples("regress", name, examples, timeout)["outputs"]
        if values.shape not in ((len(examples),), (len(examples), 1)):
            raise invalid(f"Expected output batch size to be {len(examples)}")
        return values

    def warm_up(self, records):
        """Runs the requests of a warm-up file; the first that fails raises."""
        for kind, request in records:
            signature = request.model_spec.signature_name
            if kind == "predict":
                tensors = {key: tf.make_ndarray(one) for key, one in request.inputs.items()}
                self.predict(signature, tensors, list(request.output_filter))
            else:
                getattr(self, kind)(signature, examples_of(request.input))

    def _ask_examples(self, method, name, examples, timeout):
        name = name or "serving_default"
        if name not in self.asked:
            raise invalid(f"No signature was found with the name: {name}")
        signature = self.asked[name]
        if self._check_methods and signature.method_name != METHODS[method]:
            raise invalid(f"Expected {method} signature method_name to be {METHODS[method]}")
        if set(signature.inputs) != {"inputs"}:
            raise invalid(f"No {method} inputs found in SignatureDef")
        allowed = {"classes", "scores"} if method == "classify" else {"outputs"}
        if not signature.outputs or not set(signature.outputs) <= allowed:
            raise invalid(f"No {method} outputs found in SignatureDef")
        if not examples:
            raise invalid("Input is empty")
        tensors = {"inputs": np.array(examples, object)}
        return self.predict(name, tensors, timeout=timeout)

    def _run(self, name, wanted, tensors):
        try:
            inputs = {
                alias: tf.constant(array.tolist(), tf.string, array.shape)
                if array.dtype == object
                else tf.constant(array)
                for alias, array in tensors.items()
            }
            outputs = self._model.signatures[name](**inputs)
        except Exception as error:
            raise of_tensorflow(error) from error
        return {alias: outputs[alias].numpy() for alias in wanted}


def examples_of(message):
    """Returns the serialized tf.Example of a `tensorflow.serving.Input`, with their context."""
    if not message.HasField("example_list_with_context"):
        return [one.SerializeToString() for one in message.example_list.examples]
    context = message.example_list_with_context.context.SerializeToString()
    # Serialized messages one after the other are the merged message.
    return [context + one.SerializeToString() for one in message.example_list_with_context.examples]


def _read_signatures(folder):
    graphs = read_saved_model(folder).meta_graphs
    graph = next((graph for graph in graphs if graph.meta_info_def.tags == _TAGS), None)
    if graph is None:
        tags = "; ".join(",".join(graph.meta_info_def.tags) for graph in graphs)
        raise InputError(
            f"`{folder}` should hold a graph with the tag `{_TAGS[0]}` alone. Received: {tags}."
        )
    return dict(graph.signature_def)


def _check_tensor(alias, array, info):
    """Refuses what TensorFlow would: another type, another rank, another fixed size."""
    dtype = tf.as_dtype(info.dtype)
    strings = array.dtype.kind in "OSU"
    if strings != (dtype == tf.string) or (not strings and array.dtype != dtype.as_numpy_dtype):
        raise invalid(f"Expects arg {alias} to be {dtype.name} but {array.dtype.name} is provided")
    shape = tf.TensorShape(info.tensor_shape)
    if not shape.is_compatible_with(array.shape):
        raise invalid(f"Shape of {alias} should be {shape}, got {list(array.shape)}")
