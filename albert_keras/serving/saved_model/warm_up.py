"""Warm-up requests: a server answers them while it loads a version, so that no user waits.

`assets.extra/tf_serving_warmup_requests` is a TFRecord file of `tensorflow.serving.PredictionLog`.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.serving.saved_model.signature_methods import Signature, read_signatures
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

#: Where a server looks, in the folder of a version.
WARM_UP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"
#: A server refuses a version with more requests.
MAX_REQUESTS = 1000
#: Numbers of rows of the requests.
BATCH_SIZES = (1, 8, 32)


class Request(NamedTuple):
    """A request to a signature."""

    signature: str  #: Its name.
    #: Arrays [batch, ...]; for "classify" and "regress" `inputs`, with serialized `tf.Example`s.
    inputs: dict[str, np.ndarray]


def sample_requests(
    signatures: list[Signature],
    buckets: Sequence[int],
    batch_sizes: Sequence[int] = BATCH_SIZES,
    max_tokens: int | None = None,
) -> list[Request]:
    """Creates a request for each signature, batch size and length.

    Args:
        buckets: Lengths in tokens, special ones included; texts consist of words of one token,
            which fill the length, or nearly so if a signature takes several texts.
        batch_sizes: Numbers of rows.
        max_tokens: Requests of several rows with more tokens, rows times length, are skipped:
            exporter and server answer each request, and on a CPU 32 rows of 512 tokens take a
            base-sized model about a minute (machine and commit not recorded).

    Returns:
        The small requests of each signature first.
    """
    requests = []
    for signature in signatures:
        inputs = [spec.dtype for spec in signature.inputs.values()]
        num_texts = max(1, len(signature.features) or inputs.count(tf.string))
        for length in buckets:
            # [CLS], and [SEP] after each text.
            num_words = max(1, (length - 1 - num_texts) // num_texts)
            text = " ".join(["a"] * num_words).encode()
            requests += [
                Request(signature.name, sample_inputs(signature, [text] * size, length))
                for size in batch_sizes
                if max_tokens is None or size == 1 or size * length <= max_tokens
            ]
    if not 0 < len(requests) <= MAX_REQUESTS:
        raise InputError(
            f"The number of warm-up requests must be from 1 to {MAX_REQUESTS}. "
            f"Received: {len(requests)}."
        )
    return requests


def sample_inputs(
    signature: Signature, texts: list[bytes], length: int = 16
) -> dict[str, np.ndarray]:
    """Fills the inputs of a signature, as in Request: strings with texts, numbers with ones.

    Ones are valid as ids of tokens and of segments, as positions and in masks. `length` is the size
    of free dimensions of numbers after the first, which is the batch; for strings it is 2.
    """
    for name, spec in signature.inputs.items():
        if not spec.shape.rank or spec.shape[0] is not None:
            raise InputError(
                f"Input `{name}` of signature `{signature.name}` must have a free batch "
                f"dimension. Received: shape {spec.shape}."
            )
    if signature.method != "predict":
        examples = [_example(signature.features, text) for text in texts]
        return {"inputs": np.array(examples, object)}
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


def write_warm_up(folder: Path, requests: list[Request], model: Any) -> None:
    """Sends each request to a SavedModel, then writes the requests where a server looks for them.

    A server refuses a version if one of its requests fails, and so does this function. `model` is
    the one in `folder`, loaded.
    """
    methods = {signature.name: signature.method for signature in read_signatures(folder)}
    path = folder / WARM_UP_FILE
    path.parent.mkdir(exist_ok=True)
    progress = CountedProgress(logger, "answering", len(requests), "warm-up requests")
    with whole_file(path) as temporary, tf.io.TFRecordWriter(str(temporary)) as writer:
        for name, inputs in requests:
            if name not in methods:
                raise InputError(
                    f"Warm-up requests must be for signatures of `{folder}`. Received: `{name}`."
                )
            try:
                model.signatures[name](**{key: tf.constant(value) for key, value in inputs.items()})
            except (tf.errors.OpError, TypeError, ValueError) as error:
                shapes = ", ".join(f"`{key}` {value.shape}" for key, value in inputs.items())
                raise InputError(
                    f"`{folder}` must answer each warm-up request. Signature `{name}` does not "
                    f"answer {shapes}: {short_message(error)}"
                ) from error
            log = _prediction_log(name, methods[name], inputs)
            writer.write(log.SerializeToString(deterministic=True))
            progress.add()


def short_message(error: Exception) -> str:
    """Returns the line of a TensorFlow error that says what is wrong, without its stack."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("\t")]
    if not lines:
        return type(error).__name__
    return lines[-1] if lines[0] == "Graph execution error:" else lines[0]


def _prediction_log(name, method, inputs):
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = getattr(log, f"{method}_log").request
    request.model_spec.signature_name = name
    if method == "predict":
        for key, value in inputs.items():
            request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    else:
        for example in inputs["inputs"]:
            request.input.example_list.examples.add().ParseFromString(example)
    return log


def _example(features, text):
    example = tf.train.Example()
    for name in features:
        example.features.feature[name].bytes_list.value.append(text)
    return example.SerializeToString(deterministic=True)
