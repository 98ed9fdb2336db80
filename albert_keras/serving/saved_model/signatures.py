"""The signatures of a SavedModel, requests to each, and the warm-up requests.

A server answers the warm-up requests while it
loads a version, so that no user waits: `assets.extra/tf_serving_warmup_requests` is a TFRecord file
of `tensorflow.serving.PredictionLog`. A server refuses a file of more than 1000 requests.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.report import shortened_value
from albert_keras.serving.saved_model.server_ops import read_saved_model
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

#: The graph that servers load.
_TAG = "serve"
#: Prefix of the signatures that only the loader runs.
_INTERNAL = "__saved_model_"
#: The types of the values of an input, by the property of its dtype; others are strings.
_TYPES = {
    "is_bool": (bool, np.bool_),
    "is_integer": (int, np.integer),
    "is_floating": (int, float, np.integer, np.floating),
}
#: Where a server looks, in the folder of a version.
WARM_UP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"
#: Number of rows of the warm-up request with several; more would take exporter and server long.
_BATCH_SIZE = 8


class Signature(NamedTuple):
    """A signature of a SavedModel."""

    name: str
    inputs: dict[str, tf.TensorSpec]  #: The batch is the first dimension; None is free.
    outputs: dict[str, tf.TensorSpec]


def read_signatures(folder: Path) -> list[Signature]:
    """Reads the signatures of a version, ordered by name, without running any of it."""
    graphs = read_saved_model(folder).meta_graphs
    graph = next((graph for graph in graphs if graph.meta_info_def.tags == [_TAG]), None)
    if graph is None:
        raise InputError(f"`{folder}` contains no graph with the tag `{_TAG}`.")
    return [
        Signature(
            name,
            _specs(definition.inputs),
            _specs(definition.outputs),
        )
        for name, definition in sorted(graph.signature_def.items())
        if not name.startswith(_INTERNAL)
    ]


def as_json(signatures: Iterable[Signature]) -> dict[str, dict[str, Any]]:
    """Returns signatures by name, each with dtype and shape of each tensor.

    The shape is None if the rank is unknown.
    """

    def specs(tensors):
        return {
            name: [spec.dtype.name, None if spec.shape.rank is None else spec.shape.as_list()]
            for name, spec in tensors.items()
        }

    return {
        one.name: {"inputs": specs(one.inputs), "outputs": specs(one.outputs)} for one in signatures
    }


def _specs(tensors):
    return {
        name: tf.TensorSpec(tf.TensorShape(info.tensor_shape), tf.as_dtype(info.dtype), name)
        for name, info in sorted(tensors.items())
    }


def sample_requests(
    signatures: list[Signature], buckets: Sequence[int]
) -> Iterator[tuple[Signature, dict[str, np.ndarray]]]:
    """Yields requests to each signature, see `sample_inputs`: for each length, and for a batch.

    Args:
        buckets: Lengths in tokens, special ones included; texts consist of words of one token,
            which fill the length, or nearly so if a signature takes several texts.
    """
    for signature in signatures:
        inputs = [spec.dtype for spec in signature.inputs.values()]
        num_texts = max(1, inputs.count(tf.string))
        for length, size in [*((length, 1) for length in buckets), (buckets[0], _BATCH_SIZE)]:
            # [CLS], and [SEP] after each text.
            num_words = max(1, (length - 1 - num_texts) // num_texts)
            text = " ".join(["a"] * num_words).encode()
            yield signature, sample_inputs(signature, [text] * size, length)


def sample_inputs(
    signature: Signature, texts: list[bytes], length: int = 16
) -> dict[str, np.ndarray]:
    """Fills the inputs of a signature: strings with texts, numbers with ones.

    Ones are valid as ids of tokens and of segments, as positions and in masks. `length` is the size
    of free dimensions of numbers after the first, which is the batch; for strings it is 2.

    Returns:
        Arrays [batch, ...] by name.
    """
    for name, spec in signature.inputs.items():
        if not spec.shape.rank or spec.shape[0] is not None:
            raise InputError(
                f"Input `{name}` of signature `{signature.name}` must have a free batch "
                f"dimension. Received: shape {spec.shape}."
            )
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


def to_array(value: Any, spec: tf.TensorSpec) -> np.ndarray:
    """Returns nested lists as an array with the dtype and the shape of an input of a signature.

    TensorFlow, which ends the process if lists are nested too deeply, does not see them.

    Args:
        value: Numbers, bool, str or bytes, in lists or arrays; a str becomes UTF-8, in which lone
            surrogates stand for undecodable bytes, as in the arguments of a command.
        spec: The input.

    Raises:
        InputError: If the lists have another depth or different lengths, or if a value has another
            type or does not fit into the dtype.
    """
    array = np.array(value, object, order="C")  # lists of different lengths remain lists
    values, dtype = array.reshape(-1), spec.dtype  # a view, in which there may be any rank
    allowed = next((types for kind, types in _TYPES.items() if getattr(dtype, kind)), (str, bytes))
    fits = spec.shape.is_compatible_with(array.shape) and all(
        issubclass(one, allowed) and (one is not bool or dtype.is_bool)
        for one in set(map(type, values))
    )
    if fits and dtype.is_integer and array.size:
        fits = dtype.min <= array.min() and array.max() <= dtype.max
    if not fits:
        shown = [one[:80] if isinstance(one, str | bytes) else one for one in values[:9]]
        raise InputError(
            f"The input `{spec.name}` must be {dtype.name} of the shape {spec.shape}, and lists in "
            f"a list equally long. Received: {shortened_value(shown)} of the "
            f"shape {array.shape}."
        )
    if dtype == tf.string:
        values[:] = [_bytes_of(one, spec.name) if isinstance(one, str) else one for one in values]
        return array
    with np.errstate(over="ignore"):
        return array.astype(dtype.as_numpy_dtype)


def _bytes_of(text, name):
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(f"`{name}` must be Unicode. It has half a surrogate pair.") from error


def write_warm_up(
    folder: Path, signatures: list[Signature], buckets: Sequence[int], ask: Callable
) -> None:
    """Sends requests to a SavedModel, then writes them where a server looks for them.

    A server refuses a version if one of its requests fails; so nothing is written if `ask` raises
    an error.

    Args:
        folder: The folder of the version.
        buckets: See `sample_requests`.
        ask: Calls a signature of the SavedModel, as `Predictor.ask`.
    """
    path = folder / WARM_UP_FILE
    path.parent.mkdir(exist_ok=True)
    requests = list(sample_requests(signatures, buckets))
    progress = CountedProgress(logger, "answering", len(requests), "warm-up requests")
    with whole_file(path) as temporary, tf.io.TFRecordWriter(str(temporary)) as writer:
        for signature, inputs in requests:
            ask(signature.name, **inputs)
            log = _prediction_log(signature, inputs)
            writer.write(log.SerializeToString(deterministic=True))
            progress.add()


def _prediction_log(signature, inputs):
    from tensorflow_serving.apis import prediction_log_pb2

    log = prediction_log_pb2.PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature.name
    for key, value in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(value))
    return log
