"""How many rows the warm-up requests of an export have: a server that takes fewer refuses it."""

from pathlib import Path


def most_warm_up_rows(folder):
    """Returns the rows of the largest warm-up request of a version, 0 without any.

    Args:
        folder: str or Path. Of the version.

    Raises:
        InputError: If the file is damaged.
    """
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow_serving.apis import prediction_log_pb2

    from albert_keras.serving.saved_model.warm_up import WARM_UP_FILE
    from data_pipeline.errors import InputError

    path = Path(folder) / WARM_UP_FILE
    if not path.is_file():
        return 0
    try:
        records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
        logs = [prediction_log_pb2.PredictionLog.FromString(record) for record in records]
    except (tf.errors.DataLossError, DecodeError) as error:
        raise InputError(f"`{path}` is damaged: a server would refuse the version.") from error
    return max(map(_rows, logs), default=0)


def _rows(log):
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        inputs = log.predict_log.request.inputs.values()
        return max((one.tensor_shape.dim[0].size for one in inputs), default=0)
    if kind in ("classify_log", "regress_log"):
        return len(getattr(log, kind).request.input.example_list.examples)
    return 0
