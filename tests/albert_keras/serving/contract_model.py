"""A SavedModel with a signature for each rule of the server, made in a second."""

import tensorflow as tf


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

        def of(*specs):
            return tf.function(input_signature=list(specs))

        def length(text):
            fails = tf.reduce_any(text == "fail")
            with tf.control_dependencies([tf.debugging.assert_equal(fails, False, "no fail")]):
                return tf.strings.length(tf.identity(text), unit="UTF8_CHAR")

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

        @of(text)
        def not_finite(text):
            zeros = tf.zeros(tf.shape(text))
            return {"nan": zeros / zeros, "infinity": (zeros + 1) / zeros}

        made = locals()
        names = "serving_default single pair predict_tokens not_finite"
        return {name: made[name] for name in names.split()}


def save_contract_model(folder, mark=1.0):
    """Writes a version, with `mark`, which `serving_default` returns; returns the folder."""
    module = ContractModel(mark)
    tf.saved_model.save(module, str(folder), signatures=module.signatures())
    return folder
