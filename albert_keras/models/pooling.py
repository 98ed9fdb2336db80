"""One vector for a text from the outputs of the encoder."""

import tensorflow as tf

from albert_keras.layers.weights import NamedLayer

#: How the vector of a text can be computed.
POOLINGS = ("mean", "cls", "pooler")


def mean_over_tokens(hidden, input_mask):
    """Returns the mean over the real positions of each row, [CLS] and [SEP] included.

    Args:
        hidden: float [B, S, H].
        input_mask: int [B, S]. 1 for a real token, 0 for padding.

    Returns:
        float32 [B, H].
    """
    is_real = tf.cast(input_mask, tf.float32)[:, :, None]
    total = tf.reduce_sum(tf.cast(hidden, tf.float32) * is_real, axis=1)
    return total / tf.reduce_sum(is_real, axis=1)


class Pooling(NamedLayer):
    """Computes the vector of a text. It has no weights of its own.

    Args:
        pooling: str. "mean" averages the last block over all real positions (see
            `mean_over_tokens`), "cls" takes it at [CLS], and "pooler" takes `pooled_output`, a
            dense layer with tanh on [CLS].
        **kwargs: `name`, `dtype`, as in Keras.

    Call arguments:
        outputs: dict. "sequence_output" float [B, S, H] ("cls" reads only its first position) and
            "pooled_output" float [B, H], as `AlbertEncoder` returns them.
        input_mask: int [B, S]. 1 for a real token, 0 for padding.

    Returns:
        float32 [B, H].

    Source:
        Mean: Reimers and Gurevych, 2019, "Sentence-BERT" (https://arxiv.org/abs/1908.10084),
        section 3.
    """

    def __init__(self, pooling="mean", **kwargs):
        kwargs.setdefault("name", "pooling")
        super().__init__("", **kwargs)
        if pooling not in POOLINGS:
            raise ValueError(f"`pooling` must be one of {POOLINGS}. Received: {pooling!r}.")
        self.pooling = pooling

    @property
    def reads_cls_only(self):
        """bool. Whether the last block is needed at [CLS] only."""
        return self.pooling != "mean"

    def call(self, outputs, input_mask):
        if self.pooling == "pooler":
            return tf.cast(outputs["pooled_output"], tf.float32)
        if self.pooling == "cls":
            return tf.cast(outputs["sequence_output"][:, 0], tf.float32)
        return mean_over_tokens(outputs["sequence_output"], input_mask)
