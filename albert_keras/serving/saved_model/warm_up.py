"""Requests a server answers for itself while it loads a version, so that no user waits for them.

`assets.extra/tf_serving_warmup_requests` is a TFRecord file of `tensorflow.serving.PredictionLog`.
The few messages needed are declared here, with the numbers they have in `tensorflow-serving-api`
2.15.1; so each export has the file, whether or not that package is installed.
"""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from tensorflow.core.example import example_pb2
from tensorflow.core.framework import tensor_pb2

from albert_keras.serving.saved_model.signature_methods import read_signatures
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

#: Where a server looks, in the folder of a version.
WARM_UP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"
#: A server refuses a version with more.
MAX_REQUESTS = 1000
#: Rows of the requests.
BATCH_SIZES = (1, 8, 32)

_PACKAGE = "albert_keras.serving"
_TENSOR = f".{tensor_pb2.TensorProto.DESCRIPTOR.full_name}"
_EXAMPLE = f".{example_pb2.Example.DESCRIPTOR.full_name}"
#: Message → its fields: number, type, whether repeated. Files hold numbers only, so that the
#: messages can have a package of their own and not get in the way of `tensorflow-serving-api`.
_MESSAGES = {
    "ModelSpec": {"signature_name": (3, "string", False)},
    "InputsEntry": {"key": (1, "string", False), "value": (2, _TENSOR, False)},
    "PredictRequest": {"model_spec": (1, "ModelSpec", False), "inputs": (2, "InputsEntry", True)},
    "PredictLog": {"request": (1, "PredictRequest", False)},
    "ExampleList": {"examples": (1, _EXAMPLE, True)},
    "Input": {"example_list": (1, "ExampleList", False)},
    # ClassificationRequest and RegressionRequest, which have the same fields; so have their logs.
    "ExampleRequest": {"model_spec": (1, "ModelSpec", False), "input": (2, "Input", False)},
    "ExampleLog": {"request": (1, "ExampleRequest", False)},
    "PredictionLog": {
        "classify_log": (2, "ExampleLog", False),
        "regress_log": (3, "ExampleLog", False),
        "predict_log": (6, "PredictLog", False),
    },
}


class Request(NamedTuple):
    """A request to a signature.

    Attributes:
        signature: str. Its name.
        inputs: dict of name -> array [batch, ...]. To "classify" and "regress": `inputs`, with
            serialized `tf.Example`s.
    """

    signature: str
    inputs: dict[str, np.ndarray]


def sample_requests(signatures, buckets, batch_sizes=BATCH_SIZES, max_pieces=None):
    """Makes a request for each signature, batch size and length.

    Args:
        signatures: list of Signature, as `read_signatures` gives them.
        buckets: list of int. Lengths in pieces, special ones included; texts are made of words of
            one piece, which fill the length, or nearly so where a signature takes several texts.
        batch_sizes: list of int. Rows.
        max_pieces: int or None. Requests of several rows and more pieces, rows times length, are
            left out: exporter and server answer each, and on a CPU 32 rows of 512 pieces take a
            base-sized model about a minute.

    Returns:
        list of Request, the small ones of each signature first.

    Raises:
        InputError: If these are more than a server takes, or an input has no free batch dimension.
    """
    requests = []
    for signature in signatures:
        num_texts = max(1, sum(dtype == tf.string for dtype in _fields(signature).values()))
        for length in buckets:
            # [CLS], and [SEP] after each text.
            words = max(1, (length - 1 - num_texts) // num_texts)
            text = " ".join(["a"] * words).encode()
            requests += [
                Request(signature.name, sample_inputs(signature, [text] * size, length))
                for size in batch_sizes
                if max_pieces is None or size == 1 or size * length <= max_pieces
            ]
    _check_number(requests)
    return requests


def sample_inputs(signature, texts, length):
    """Fills the inputs of a signature: strings with texts, numbers with ones.

    Ones are in range as ids of pieces and of segments, as positions and in masks.

    Args:
        signature: Signature.
        texts: list of bytes [batch].
        length: int. Of free dimensions of numbers after the first; those of strings are 2.

    Returns:
        dict of name -> array [batch, ...], as in Request.

    Raises:
        InputError: If an input has no free batch dimension.
    """
    for name, spec in signature.inputs.items():
        if not spec.shape.rank or spec.shape[0] is not None:
            raise InputError(
                f"Input `{name}` of signature `{signature.name}` should have a free batch "
                f"dimension. Received: shape {spec.shape}."
            )
    if signature.method != "predict":
        return {"inputs": np.array([_example(signature, text) for text in texts], object)}
    inputs = {}
    for name, spec in signature.inputs.items():
        free = 2 if spec.dtype == tf.string else length
        shape = [len(texts), *(free if size is None else size for size in spec.shape[1:])]
        if spec.dtype == tf.string:
            columns = np.array(texts, object).reshape([-1] + [1] * (len(shape) - 1))
            inputs[name] = np.broadcast_to(columns, shape)
        else:
            inputs[name] = np.ones(shape, spec.dtype.as_numpy_dtype)
    return inputs


def write_warm_up(folder, requests, model=None):
    """Asks a SavedModel each request once, then writes them where a server looks for them.

    A server refuses a version of which one request fails.

    Args:
        folder: str or Path. Of one version, with `saved_model.pb`.
        requests: list of Request.
        model: The same SavedModel, loaded, or None.

    Returns:
        Path. The file.

    Raises:
        InputError: If the model refuses a request, or they are none or more than `MAX_REQUESTS`.
    """
    # Registers the operations of the tokenizer. Not at the top: `restricted_loader` uses this file.
    import tensorflow_text  # noqa: F401

    _check_number(requests)
    methods = {signature.name: signature.method for signature in read_signatures(folder)}
    model = tf.saved_model.load(str(folder)) if model is None else model
    path = Path(folder) / WARM_UP_FILE
    path.parent.mkdir(exist_ok=True)
    with whole_file(path) as temporary, tf.io.TFRecordWriter(str(temporary)) as writer:
        for name, inputs in requests:
            if name not in methods:
                raise InputError(
                    f"Warm-up requests should be for signatures of `{folder}`. Received: `{name}`."
                )
            try:
                model.signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
            except (tf.errors.OpError, TypeError, ValueError) as error:
                shapes = ", ".join(f"`{key}` {value.shape}" for key, value in inputs.items())
                raise InputError(
                    f"`{folder}` should answer each warm-up request. Signature `{name}` does not "
                    f"answer {shapes}: {words_of(error)}"
                ) from error
            writer.write(
                _prediction_log(name, methods[name], inputs).SerializeToString(deterministic=True)
            )
    return path


def words_of(error):
    """Returns the line of an error of TensorFlow that says what is wrong, without its stack."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("\t")]
    if not lines:
        return type(error).__name__
    return lines[-1] if lines[0] == "Graph execution error:" else lines[0]


def _prediction_log(name, method, inputs):
    log = _prediction_log_class()()
    request = getattr(log, f"{method}_log").request
    request.model_spec.signature_name = name
    if method == "predict":
        for key, value in inputs.items():
            request.inputs.add(key=key, value=tf.make_tensor_proto(value))
    else:
        for example in inputs["inputs"]:
            request.input.example_list.examples.add().ParseFromString(example)
    return log


def _fields(signature):
    """Returns what a request can fill, a dict of name -> tf.DType."""
    if signature.method != "predict":
        return signature.features
    return {name: spec.dtype for name, spec in signature.inputs.items()}


def _example(signature, text):
    example = tf.train.Example()
    for name, dtype in signature.features.items():
        feature = example.features.feature[name]
        if dtype == tf.string:
            feature.bytes_list.value.append(text)
        else:
            values = feature.float_list if dtype.is_floating else feature.int64_list
            values.value.append(1)
    return example.SerializeToString(deterministic=True)


def _check_number(requests):
    if not 0 < len(requests) <= MAX_REQUESTS:
        raise InputError(
            f"Warm-up requests should be from 1 to {MAX_REQUESTS}. Received: {len(requests)}."
        )


@functools.cache
def _prediction_log_class():
    file = descriptor_pb2.FileDescriptorProto(
        name="albert_keras/serving/warm_up.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[proto.DESCRIPTOR.name for proto in (tensor_pb2, example_pb2)],
    )
    field_type = descriptor_pb2.FieldDescriptorProto
    for message, fields in _MESSAGES.items():
        declared = file.message_type.add(name=message)
        for name, (number, type_, repeated) in fields.items():
            field = declared.field.add(name=name, number=number, type=field_type.TYPE_STRING)
            field.label = field_type.LABEL_REPEATED if repeated else field_type.LABEL_OPTIONAL
            if type_ != "string":
                field.type = field_type.TYPE_MESSAGE
                field.type_name = type_ if type_.startswith(".") else f".{_PACKAGE}.{type_}"
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.PredictionLog"))
