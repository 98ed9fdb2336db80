"""Reads the warm-up requests of a version, and refuses what the server refuses."""

import tensorflow as tf
from google.protobuf.message import DecodeError

from albert_keras.serving.protocol.status import invalid, status_of
from tests.albert_keras.serving.contract.protos import PredictionLog

FILE = "assets.extra/tf_serving_warmup_requests"
_LARGEST = 1000
_KINDS = {"predict_log": "predict", "classify_log": "classify", "regress_log": "regress"}


def read_warmup(folder):
    """Returns the requests of a version, a list of (kind, request); empty without a file.

    A multi-inference record becomes one request for each of its tasks.
    """
    path = folder / FILE
    if not path.is_file():
        return []
    requests = []
    try:
        records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    except tf.errors.OpError as error:
        raise status_of(error) from error
    if len(records) > _LARGEST:
        raise invalid(f"Number of warmup records exceeds the maximum ({_LARGEST})")
    for number, record in enumerate(records):
        try:
            log = PredictionLog.FromString(record)
        except DecodeError as error:
            raise invalid(f"Failed to parse warmup record {number}") from error
        kinds = [field.name for field, _ in log.ListFields()]
        if kinds == ["multi_inference_log"]:
            requests += _of_tasks(log.multi_inference_log.request)
        elif len(kinds) == 1 and kinds[0] in _KINDS:
            requests.append((_KINDS[kinds[0]], getattr(log, kinds[0]).request))
        else:
            raise invalid(f"Unsupported log_type for warmup: {kinds}")
    return requests


def _of_tasks(request):
    for task in request.tasks:
        single = type("Request", (), {"model_spec": task.model_spec, "input": request.input})
        yield task.method_name.rpartition("/")[2], single
