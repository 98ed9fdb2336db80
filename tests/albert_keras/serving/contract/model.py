"""A SavedModel with a signature for each rule of the server, made in a second."""

from pathlib import Path

import tensorflow as tf

from albert_keras.serving.layout import versions
from tests.albert_keras.serving.contract.protos import PredictionLog
from tests.albert_keras.serving.contract.warmup import FILE

_METHODS = ("classify", "regress")


class ContractModel(tf.Module):
    """Counts characters. `mark` tells one version from another.

    `serving_default` and `single` fail on the text "fail", as no export of ours does.
    """

    def __init__(self, mark):
        super().__init__()
        self.mark = tf.Variable(float(mark), trainable=False)

    def signatures(self):
        """Returns dict of name -> tf.function."""
        text = tf.TensorSpec([None], tf.string, name="text")
        first = tf.TensorSpec([None], tf.string, name="first")
        second = tf.TensorSpec([None], tf.string, name="second")
        ids = tf.TensorSpec([None, None], tf.int32, name="input_ids")
        examples = tf.TensorSpec([None], tf.string, name="inputs")

        def of(*specs):
            return tf.function(input_signature=list(specs))

        def length(text):
            fails = tf.reduce_any(text == "fail")
            with tf.control_dependencies([tf.debugging.assert_equal(fails, False, "no fail")]):
                return tf.strings.length(tf.identity(text), unit="UTF8_CHAR")

        def text_of(examples):
            features = {"text": tf.io.FixedLenFeature([], tf.string)}
            return tf.io.parse_example(examples, features)["text"]

        @of(text)
        def serving_default(text):
            marks = tf.fill(tf.shape(text), self.mark)
            return {"length": length(text), "upper": tf.strings.upper(text), "mark": marks}

        @of(text)
        def single(text):
            return {"length": length(text)}

        @of(first, second)
        def pair(first, second):
            same = tf.cast(first == second, tf.float32)
            return {"same": same, "joined": tf.strings.join([first, second])}

        @of(ids)
        def predict_tokens(input_ids):
            return {"total": tf.reduce_sum(input_ids, axis=1), "ids": input_ids}

        @of(examples)
        def classify(inputs):
            scores = tf.cast(tf.strings.length(text_of(inputs)), tf.float32)
            classes = tf.tile([["long", "short"]], [tf.shape(inputs)[0], 1])
            return {"classes": classes, "scores": tf.stack([scores, -scores], axis=1)}

        @of(examples)
        def regress(inputs):
            return {"outputs": tf.cast(tf.strings.length(text_of(inputs)), tf.float32)}

        @of(text)
        def not_finite(text):
            zeros = tf.zeros(tf.shape(text))
            return {"nan": zeros / zeros, "infinity": (zeros + 1) / zeros}

        @of(text)
        def uneven(text):
            return {"one": tf.constant([1.0]), "all": tf.strings.length(text)}

        @of(text)
        def scalar(text):
            total = tf.reduce_sum(tf.strings.length(text))
            return {"total": total, "twice": 2 * total}

        @of(text)
        def raw(text):
            return {"text_bytes": text, "text": tf.strings.upper(text)}

        made = locals()
        names = "serving_default single pair predict_tokens classify regress not_finite uneven"
        return {name: made[name] for name in [*names.split(), "scalar", "raw"]}


def save_contract_model(folder, mark=1.0, warmup=()):
    """Writes a version whole.

    Args:
        folder: Path. Of the version.
        mark: float. What `serving_default` returns as `mark`.
        warmup: list of bytes. Records of the warm-up file.
    """
    folder = Path(folder)
    staging = folder.with_name(f".{folder.name}.tmp-1")
    module = ContractModel(mark)
    tf.saved_model.save(module, str(staging), signatures=module.signatures())
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(staging))
    for name in _METHODS:
        updater.replace_method_name(
            signature_key=name, method_name=f"tensorflow/serving/{name}", tags="serve"
        )
    updater.save()
    if warmup:
        write_warmup(staging, warmup)
    staging.rename(folder)


def write_warmup(folder, records):
    """Writes a warm-up file into a version."""
    (folder / FILE).parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(folder / FILE)) as writer:
        for record in records:
            writer.write(record)


def predict_record(signature, **inputs):
    """Returns a serialized PredictionLog of a predict request."""
    log = PredictionLog()
    request = log.predict_log.request
    request.model_spec.signature_name = signature
    for name, values in inputs.items():
        proto = tf.make_tensor_proto(values)
        request.inputs[name].ParseFromString(proto.SerializeToString())
    return log.SerializeToString()


def next_version(base_path):
    """Returns the folder of the next version."""
    return Path(base_path) / str(([0] + versions(base_path))[-1] + 1)
