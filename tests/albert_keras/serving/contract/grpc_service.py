"""The gRPC side of the contract server; needs `tensorflow-serving-api`."""

from concurrent.futures import ThreadPoolExecutor

import grpc
import tensorflow as tf
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from albert_keras.serving.protocol.rest_routes import unknown_model
from albert_keras.serving.protocol.status import HTTP_STATUS, status_of
from tests.albert_keras.serving.contract.servable import examples_of


def start_grpc(models):
    """Serves some models until `stop(None)` of what it returns.

    Args:
        models: dict of name -> ModelVersions.

    Returns:
        (grpc.Server, "127.0.0.1:PORT").
    """
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(8), options=options)
    service = _Service(models)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(service, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


def _with_status(method):
    def answer(self, request, context):
        try:
            return method(self, request)
        except Exception as error:
            status = status_of(error)
            context.abort(grpc.StatusCode[status.code], status.message)

    return answer


class _Service(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    def __init__(self, models):
        self._models = models

    @_with_status
    def Predict(self, request):
        _, servable = self._servable(request.model_spec)
        tensors = {name: tf.make_ndarray(one) for name, one in request.inputs.items()}
        name, wanted = request.model_spec.signature_name, list(request.output_filter)
        response = predict_pb2.PredictResponse()
        for alias, array in servable.predict(name, tensors, wanted).items():
            response.outputs[alias].CopyFrom(tf.make_tensor_proto(array))
        return response

    @_with_status
    def Classify(self, request):
        _, servable = self._servable(request.model_spec)
        examples = examples_of(request.input)
        found = servable.classify(request.model_spec.signature_name, examples)
        response = classification_pb2.ClassificationResponse()
        for labels, scores in zip(*found, strict=True):
            row = response.result.classifications.add()
            for label, score in zip(labels, scores, strict=True):
                row.classes.add(label=label, score=score)
        return response

    @_with_status
    def Regress(self, request):
        _, servable = self._servable(request.model_spec)
        examples = examples_of(request.input)
        response = regression_pb2.RegressionResponse()
        for value in servable.regress(request.model_spec.signature_name, examples):
            response.result.regressions.add(value=value)
        return response

    @_with_status
    def GetModelMetadata(self, request):
        version, servable = self._servable(request.model_spec)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name, signature in servable.signatures.items():
            signatures.signature_def[name].CopyFrom(signature)
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.version.value = version
        response.metadata["signature_def"].Pack(signatures)
        return response

    @_with_status
    def GetModelStatus(self, request):
        spec = request.model_spec
        if spec.name not in self._models:
            raise unknown_model(spec.name)
        response = get_model_status_pb2.GetModelStatusResponse()
        for version, state, error in self._models[spec.name].status(**_chosen(spec)):
            one = response.model_version_status.add(version=version, state=state)
            if error:
                one.status.error_code = list(HTTP_STATUS).index(error.code)
                one.status.error_message = error.message
        return response

    def _servable(self, spec):
        if spec.name not in self._models:
            raise unknown_model(spec.name)
        return self._models[spec.name].servable(**_chosen(spec))


def _chosen(spec):
    version = spec.version.value if spec.HasField("version") else None
    return {"version": version, "label": spec.version_label or None}
