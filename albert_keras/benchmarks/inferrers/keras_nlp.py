"""KerasNLP's `AlbertBackbone` as a function of TensorFlow, on ids."""

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.inferrers.questions import difference


def prepare(config, question, dtype):
    """Makes a backbone with our initial weights and traces it: a Prepared."""
    import tensorflow as tf

    from albert_keras.interop.keras_nlp import to_keras_nlp
    from albert_keras.models.encoder import AlbertEncoder

    policy = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[dtype]
    backbone = to_keras_nlp(AlbertEncoder(config, dtype=policy))
    ids = tf.constant(question.ids)
    inputs = {
        "token_ids": ids,
        "segment_ids": tf.zeros_like(ids),
        "padding_mask": tf.ones_like(ids),
    }

    @tf.function
    def encode(inputs):
        return backbone(inputs, training=False)["pooled_output"]

    def run():
        return encode(inputs).numpy()

    return Prepared(run, {"input": "ids", "difference": difference(run(), question, dtype)})
