"""A client for the gRPC interface of `tensorflow_model_server`.

Anyone who can reach the port can change the configuration of the server: keep the port on loopback,
or behind TLS with client certificates.
"""

import re
from collections.abc import Iterable

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from albert_keras.serving.client.client_errors import Retries, ServingError
from albert_keras.serving.client.rest_client import Signature, VersionState, signatures_from_json
from data_pipeline.errors import InputError


class GrpcClient:
    """A client of one model; several threads may share it.

    Calls change nothing on the server, so they are repeated if it is busy or not running
    (UNAVAILABLE, RESOURCE_EXHAUSTED), but never after a time-out or if a message is too long.

    The other arguments are the same as for `RestClient`.

    Args:
        target: Address of the server, such as `127.0.0.1:8500`.
        max_message_bytes: Longer requests and answers are an error; gRPC's default is 4 MiB.
        credentials: None connects without TLS.

    Raises:
        InputError: If an argument is invalid.
    """

    def __init__(
        self,
        target: str,
        model: str,
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30.0,
        retries: int = 3,
        max_message_bytes: int = 64 << 20,
        credentials: grpc.ChannelCredentials | None = None,
    ):
        if not re.fullmatch(r"[^\s/]+:\d{1,5}", target):
            raise InputError(
                f"The address of a gRPC server must be like `127.0.0.1:8500`. Received: {target}."
            )
        if version is not None and label is not None:
            raise InputError("Give a version or a label, not both.")
        self.target, self.model = target, model
        self._version, self._label = version, label
        self._retries = Retries(retries, timeout)
        options = [
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_send_message_length", max_message_bytes),
            ("grpc.enable_retries", 0),  # `Retries` keeps to the time limit
        ]
        if credentials is None:
            self._channel = grpc.insecure_channel(target, options)
        else:
            self._channel = grpc.secure_channel(target, credentials, options)
        self._prediction = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the channel; the client cannot be used afterwards."""
        self._channel.close()

    def predict(
        self, signature: str = "serving_default", output_filter: Iterable[str] = (), **inputs
    ) -> dict[str, np.ndarray]:
        """Calls a signature.

        Args:
            output_filter: Outputs to return; all if it is empty.
            **inputs: A nested list or array [B, ...] per input; Python integers become int32 and
                floats float32.

        Returns:
            Output -> array [B, ...]; strings as an array of bytes.

        Raises:
            ServingError: If the server refuses the request, fails or does not answer.
        """
        request = predict_pb2.PredictRequest(output_filter=output_filter)
        self._fill_spec(request.model_spec, signature)
        for name, value in inputs.items():
            try:
                request.inputs[name].CopyFrom(tf.make_tensor_proto(_encoded(value)))
            except (TypeError, ValueError) as error:
                raise InputError(f"The input `{name}` is not a tensor: {error}.") from error
        outputs = self._call(self._prediction.Predict, request).outputs
        return {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}

    def classify(self, examples, signature="classify"):
        """Returns a list of (label, score) for each example, a tf.train.Example."""
        request = classification_pb2.ClassificationRequest()
        result = self._call_examples(self._prediction.Classify, request, examples, signature)
        return [[(one.label, one.score) for one in row.classes] for row in result.classifications]

    def regress(self, examples, signature="regress"):
        """Returns a float for each example, a tf.train.Example."""
        request = regression_pb2.RegressionRequest()
        result = self._call_examples(self._prediction.Regress, request, examples, signature)
        return [one.value for one in result.regressions]

    def status(self) -> list[VersionState]:
        """Returns the versions on the server."""
        request = get_model_status_pb2.GetModelStatusRequest()
        self._fill_spec(request.model_spec)
        states = get_model_status_pb2.ModelVersionStatus.State
        return [
            VersionState(one.version, states.Name(one.state), one.status.error_message)
            for one in self._call(self._models.GetModelStatus, request).model_version_status
        ]

    def metadata(self) -> dict[str, Signature]:
        """Returns the signatures of the model."""
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        self._fill_spec(request.model_spec)
        answer = self._call(self._prediction.GetModelMetadata, request)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(signatures)
        definitions = MessageToDict(signatures, preserving_proto_field_name=True)
        return signatures_from_json(definitions["signature_def"])

    def _call_examples(self, method, request, examples, signature):
        self._fill_spec(request.model_spec, signature)
        request.input.example_list.examples.extend(examples)
        return self._call(method, request).result

    def _fill_spec(self, spec, signature=""):
        spec.name, spec.signature_name = self.model, signature
        if self._version is not None:
            spec.version.value = self._version
        if self._label is not None:
            spec.version_label = self._label

    def _call(self, method, request):
        def call(seconds):
            try:
                return method(request, timeout=seconds)
            except grpc.RpcError as error:
                message = error.details() or "no details"
                target = f"{self.target} {self.model}"
                raise ServingError(target, error.code().name, message) from error

        return self._retries.run(call)


def _encoded(value):
    """Returns a value with its strings as bytes; undecodable bytes are restored."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    if isinstance(value, list | tuple):
        return [_encoded(one) for one in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        return _encoded(value.tolist())
    return value
