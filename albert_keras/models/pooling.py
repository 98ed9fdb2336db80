"""What heads for whole texts read: one vector for a text, or the comparison of two."""

import tensorflow as tf

from albert_keras.layers.rows import shape_of, token_mask
from albert_keras.layers.weights import NamedLayer

#: How the vector of a text can be computed.
POOLINGS = ("mean", "cls", "pooler")
#: How a pair of texts can be encoded.
PAIR_ENCODINGS = ("joint", "separate")
#: Vectors of this many times the width of a text's vector compare two texts, see `comparison`.
COMPARISON_WIDTHS = 4


def mean_over_tokens(hidden, input_mask):
    """Returns the mean over the real positions of each row, [CLS] and [SEP] included.

    float [B, S, H] and int [B, S], 1 for a real token, 0 for padding -> float32 [B, H].
    """
    is_real = tf.cast(input_mask, tf.float32)[:, :, None]
    total = tf.reduce_sum(tf.cast(hidden, tf.float32) * is_real, axis=1)
    return total / tf.maximum(tf.reduce_sum(is_real, axis=1), 1.0)  # 0 for a row without tokens


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


def separate_texts(inputs):
    """Splits the sequences of pairs into one sequence for each text.

    Args:
        inputs: dict of int [B, S]. `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP] [SEP] b [SEP]` as in
            RoBERTa: "input_ids"; "input_mask", 1 for a real token (default: all); "segment_ids", 1
            for b and the [SEP] after it (default: all 0).

    Returns:
        dict of int32 [2 B, S]. `[CLS] a [SEP]` and `[CLS] b [SEP]` of the first pair, then of the
        second one and so on, each padded with zeros, as if the text were alone; "segment_ids" are
        all 0. A second text that is missing is [CLS] alone.
    """
    ids = tf.cast(inputs["input_ids"], tf.int32)
    mask, segments = tf.cast(token_mask(inputs), tf.int32), inputs.get("segment_ids")
    segments = tf.zeros_like(ids) if segments is None else tf.cast(segments, tf.int32)
    length = shape_of(ids)[1]
    position = tf.range(length)[None]
    # At least [CLS], without which there would be no mean.
    first_end = tf.maximum(tf.reduce_sum(mask * (1 - segments), axis=1, keepdims=True), 1)  # [B, 1]
    second_size = tf.reduce_sum(mask * segments, axis=1, keepdims=True)

    # Where the tokens of the second sequence after [CLS] come from. Clipped, as a server may be
    # sent masks in any pattern.
    source = tf.clip_by_value(position + first_end - 1, 0, length - 1)
    second = tf.where(position == 0, ids, tf.gather(ids, source, batch_dims=1))
    second_mask = tf.cast(position <= second_size, tf.int32)

    # The last token is a separator; the one before it is equal only if it is one, too, as text
    # never becomes a special token.
    at_end = tf.gather(ids, tf.maximum(first_end - tf.constant([[1, 2]]), 0), batch_dims=1)
    has_two = (at_end[:, :1] == at_end[:, 1:]) & (second_size > 0) & (first_end > 1)
    first_mask = tf.cast(position < first_end - tf.cast(has_two, tf.int32), tf.int32)

    masks = _interleaved(first_mask, second_mask)
    return {
        "input_ids": _interleaved(ids, second) * masks,
        "input_mask": masks,
        "segment_ids": tf.zeros_like(masks),
    }


def comparison(vectors):
    """Computes what a linear layer needs to compare two texts.

    Args:
        vectors: float [2 B, H]. Of the first and the second text of each pair in turn.

    Returns:
        float32 [B, 4 H]. u, v, |u - v| and u * v side by side, where u and v are the two vectors
        with a length of √H, so that their elements are about 1.

    Source:
        Conneau et al., 2017, "Supervised Learning of Universal Sentence Representations from
        Natural Language Inference Data" (https://arxiv.org/abs/1705.02364), section 3.1, where the
        vectors have any length.
    """
    size = vectors.shape[-1]
    vectors = tf.math.l2_normalize(tf.cast(vectors, tf.float32), axis=-1) * size**0.5
    first, second = tf.unstack(tf.reshape(vectors, (-1, 2, size)), axis=1)
    return tf.concat([first, second, tf.abs(first - second), first * second], axis=-1)


def _interleaved(first, second):
    """Joins two [B, S] to [2 B, S]: the first row of each, then the second of each and so on."""
    return tf.reshape(tf.stack([first, second], axis=1), (-1, shape_of(first)[1]))
