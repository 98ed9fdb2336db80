"""Messages of TensorFlow Serving that tests read and write.

They are declared here so that tests need no further package. Names and numbers are the same as in
the `.proto` files of version 2.15.1: messages written with `tensorflow-serving-api` read the same
here.
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from tensorflow.core.example import example_pb2
from tensorflow.core.framework import tensor_pb2

_FIELD = descriptor_pb2.FieldDescriptorProto
_PACKAGE = "tensorflow.serving"
_TYPES = {
    "string": _FIELD.TYPE_STRING,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "bool": _FIELD.TYPE_BOOL,
}
_INT64_VALUE = "google.protobuf.Int64Value"

#: Message -> its fields, each (name, number, type). `*` before a type means repeated, `{}` around
#: one a map from strings.
_MESSAGES = {
    "ModelSpec": [
        ("name", 1, "string"),
        ("version", 2, _INT64_VALUE),
        ("signature_name", 3, "string"),
        ("version_label", 4, "string"),
    ],
    "PredictRequest": [
        ("model_spec", 1, "ModelSpec"),
        ("inputs", 2, "{tensorflow.TensorProto}"),
        ("output_filter", 3, "*string"),
    ],
    "ExampleList": [("examples", 1, "*tensorflow.Example")],
    "ExampleListWithContext": [
        ("examples", 1, "*tensorflow.Example"),
        ("context", 2, "tensorflow.Example"),
    ],
    "Input": [
        ("example_list", 1, "ExampleList"),
        ("example_list_with_context", 2, "ExampleListWithContext"),
    ],
    "ClassificationRequest": [("model_spec", 1, "ModelSpec"), ("input", 2, "Input")],
    "RegressionRequest": [("model_spec", 1, "ModelSpec"), ("input", 2, "Input")],
    "InferenceTask": [("model_spec", 1, "ModelSpec"), ("method_name", 2, "string")],
    "MultiInferenceRequest": [("tasks", 1, "*InferenceTask"), ("input", 2, "Input")],
    "ClassifyLog": [("request", 1, "ClassificationRequest")],
    "RegressLog": [("request", 1, "RegressionRequest")],
    "PredictLog": [("request", 1, "PredictRequest")],
    "MultiInferenceLog": [("request", 1, "MultiInferenceRequest")],
    "SessionRunLog": [],
    "PredictionLog": [
        ("classify_log", 2, "ClassifyLog"),
        ("regress_log", 3, "RegressLog"),
        ("multi_inference_log", 4, "MultiInferenceLog"),
        ("session_run_log", 5, "SessionRunLog"),
        ("predict_log", 6, "PredictLog"),
        ("predict_streamed_log", 7, "PredictLog"),
    ],
    "Latest": [("num_versions", 1, "uint32")],
    "All": [],
    "Specific": [("versions", 1, "*int64")],
    "ServableVersionPolicy": [
        ("latest", 100, "Latest"),
        ("all", 101, "All"),
        ("specific", 102, "Specific"),
    ],
    "ModelConfig": [
        ("name", 1, "string"),
        ("base_path", 2, "string"),
        ("model_platform", 4, "string"),
        ("model_version_policy", 7, "ServableVersionPolicy"),
        ("version_labels", 8, "{int64}"),
    ],
    "ModelConfigList": [("config", 1, "*ModelConfig")],
    "ModelServerConfig": [("model_config_list", 1, "ModelConfigList")],
    "BatchingParameters": [
        ("max_batch_size", 1, _INT64_VALUE),
        ("batch_timeout_micros", 2, _INT64_VALUE),
        ("max_enqueued_batches", 3, _INT64_VALUE),
        ("num_batch_threads", 4, _INT64_VALUE),
        ("allowed_batch_sizes", 6, "*int64"),
        ("pad_variable_length_inputs", 7, "bool"),
    ],
    "PrometheusConfig": [("enable", 1, "bool"), ("path", 2, "string")],
    "MonitoringConfig": [("prometheus_config", 1, "PrometheusConfig")],
}


def _add_field(message, name, number, kind):
    is_map, repeated = kind.startswith("{"), kind.startswith("*")
    kind = kind.strip("*{}")
    if is_map:
        entry = message.nested_type.add(name=name.title().replace("_", "") + "Entry")
        entry.options.map_entry = True
        _add_field(entry, "key", 1, "string")
        _add_field(entry, "value", 2, kind)
        kind = f"{message.name}.{entry.name}"
    field = message.field.add(name=name, number=number)
    field.label = _FIELD.LABEL_REPEATED if is_map or repeated else _FIELD.LABEL_OPTIONAL
    field.type = _TYPES.get(kind, _FIELD.TYPE_MESSAGE)
    if kind not in _TYPES:
        known = kind.startswith(("tensorflow.", "google."))
        field.type_name = f".{kind}" if known else f".{_PACKAGE}.{kind}"


def _classes():
    pool = descriptor_pool.DescriptorPool()  # its own, as the real package may be there, too

    def add(file):
        for dependency in file.dependencies:
            add(dependency)
        pool.AddSerializedFile(file.serialized_pb)

    file = descriptor_pb2.FileDescriptorProto(
        name="contract/serving.proto", package=_PACKAGE, syntax="proto3"
    )
    for module in (wrappers_pb2, example_pb2, tensor_pb2):
        add(module.DESCRIPTOR)
        file.dependency.append(module.DESCRIPTOR.name)
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _MESSAGES
    }


#: Name -> message class.
MESSAGES = _classes()
PredictionLog = MESSAGES["PredictionLog"]
