"""A client for the gRPC interface of `tensorflow_model_server`.

The port takes new configurations from anyone who reaches it: keep it on loopback, or behind TLS
with client certificates.
"""

import re

import numpy as np

from albert_keras.serving.client.client_errors import Retries, ServingError
from albert_keras.serving.client.rest_client import Signature, VersionState
from data_pipeline.errors import InputError


class GrpcClient:
    """Asks one model of one server; several threads may share it.

    No call changes anything at the server, so that all are repeated where it is busy or not there
    (UNAVAILABLE, RESOURCE_EXHAUSTED), never after a time-out or where a message is too long.

    Args:
        target: str. Address of the server, such as `127.0.0.1:8500`.
        model: str. Its name there.
        version: int or None. None asks the newest one.
        label: str or None. A label instead of a version.
        timeout: float. Seconds for a call with all its repetitions.
        retries: int. How often to repeat a call.
        max_message_bytes: int. Longer requests and answers are refused; 4 MiB is gRPC's own limit.
        credentials: grpc.ChannelCredentials or None. None speaks without TLS.

    Raises:
        InputError: If one of these cannot be, or if the packages are missing.
    """

    def __init__(
        self,
        target,
        model,
        version=None,
        label=None,
        timeout=30.0,
        retries=3,
        max_message_bytes=64 << 20,
        credentials=None,
    ):
        if not re.fullmatch(r"[^\s/]+:\d{1,5}", target):
            raise InputError(
                f"The address of a gRPC server should be like `127.0.0.1:8500`. Received: {target}."
            )
        if version is not None and label is not None:
            raise InputError("Give a version or a label, not both.")
        # Here, as these load TensorFlow.
        import grpc
        from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc

        self.target, self.model = target, model
        self._grpc, self._version, self._label = grpc, version, label
        self._retries = Retries(retries, timeout)
        options = [
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_send_message_length", max_message_bytes),
            ("grpc.enable_retries", 0),  # ours keep to the time limit
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
        """Closes the channel; no call can follow."""
        self._channel.close()

    def predict(self, signature="serving_default", output_filter=(), **inputs):
        """Asks a signature.

        Args:
            signature: str.
            output_filter: iterable of str. Outputs to return; all where it is empty.
            **inputs: For each input a nested list or array, its first dimension the batch B;
                Python integers become int32 and floats float32.

        Returns:
            dict of output -> array [B, ...]; strings as an array of bytes.

        Raises:
            ServingError: If the server refuses, fails or does not answer.
        """
        import tensorflow as tf
        from tensorflow_serving.apis import predict_pb2

        request = predict_pb2.PredictRequest(output_filter=output_filter)
        self._fill(request.model_spec, signature)
        for name, value in inputs.items():
            try:
                request.inputs[name].CopyFrom(tf.make_tensor_proto(_encoded(value)))
            except (TypeError, ValueError) as error:
                raise InputError(f"The input `{name}` is no tensor: {error}.") from error
        outputs = self._ask(self._prediction.Predict, request).outputs
        return {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}

    def classify(self, examples, signature="classify"):
        """Returns for each example, a tf.train.Example, a list of (label, score)."""
        from tensorflow_serving.apis import classification_pb2

        request = classification_pb2.ClassificationRequest()
        self._fill(request.model_spec, signature)
        request.input.example_list.examples.extend(examples)
        rows = self._ask(self._prediction.Classify, request).result.classifications
        return [[(one.label, one.score) for one in row.classes] for row in rows]

    def regress(self, examples, signature="regress"):
        """Returns for each example, a tf.train.Example, a float."""
        from tensorflow_serving.apis import regression_pb2

        request = regression_pb2.RegressionRequest()
        self._fill(request.model_spec, signature)
        request.input.example_list.examples.extend(examples)
        result = self._ask(self._prediction.Regress, request).result
        return [one.value for one in result.regressions]

    def status(self):
        """Returns the versions at the server, a list of VersionState."""
        from tensorflow_serving.apis import get_model_status_pb2 as status_pb2

        request = status_pb2.GetModelStatusRequest()
        self._fill(request.model_spec)
        states = status_pb2.ModelVersionStatus.State
        return [
            VersionState(one.version, states.Name(one.state), one.status.error_message)
            for one in self._ask(self._models.GetModelStatus, request).model_version_status
        ]

    def metadata(self):
        """Returns the signatures of the model, a dict of name -> Signature."""
        from tensorflow_serving.apis import get_model_metadata_pb2

        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
        self._fill(request.model_spec)
        answer = self._ask(self._prediction.GetModelMetadata, request)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        answer.metadata["signature_def"].Unpack(signatures)
        return {
            name: Signature(
                one.method_name.rpartition("/")[2],
                {key: _tensor(info) for key, info in one.inputs.items()},
                {key: _tensor(info) for key, info in one.outputs.items()},
            )
            for name, one in signatures.signature_def.items()
            if not name.startswith("__")
        }

    def _fill(self, spec, signature=""):
        spec.name, spec.signature_name = self.model, signature
        if self._version is not None:
            spec.version.value = self._version
        if self._label is not None:
            spec.version_label = self._label

    def _ask(self, method, request):
        def call(seconds):
            try:
                return method(request, timeout=seconds)
            except self._grpc.RpcError as error:
                said = error.details() or "nothing more"
                target = f"{self.target} {self.model}"
                raise ServingError(target, error.code().name, said) from error

        return self._retries.run(call)


def _encoded(value):
    """Returns a value with its strings as bytes, undecodable bytes as they came."""
    if isinstance(value, str):
        return value.encode(errors="surrogateescape")
    if isinstance(value, list | tuple):
        return [_encoded(one) for one in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "OSU":
        return _encoded(value.tolist())
    return value


def _tensor(info):
    from tensorflow.core.framework import types_pb2

    dtype = types_pb2.DataType.Name(info.dtype)
    if info.tensor_shape.unknown_rank:
        return dtype, None
    return dtype, tuple(size.size for size in info.tensor_shape.dim)
