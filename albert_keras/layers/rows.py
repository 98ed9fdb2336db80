"""A batch of sequences as the rows of one matrix, with or without the rows of padding.

Only attention needs to know which position belongs to which sequence; the products and everything
between them work on one row per position.
"""

import tensorflow as tf

#: Without padding the number of rows is rounded up to a sixteenth of all positions, and the length
#: of the longest sequence to a multiple of 64, so that only a few shapes have to be compiled.
_SHARES, _MULTIPLE = 16, 64


class Rows:
    """The mapping between positions of a batch, [B, S], and rows, [N].

    Args:
        input_mask: int [B, S]. 1 for a real token, 0 for padding, in any pattern.
        skips_padding: bool. Whether (almost) all padding has no row. N then depends on the batch,
            which TPUs do not allow.
    """

    def __init__(self, input_mask, skips_padding=False):
        self._shape = shape_of(input_mask)
        self._indices = _indices(input_mask) if skips_padding else None
        #: int. S, or None if it is not static.
        self.length = input_mask.shape[1]
        #: float32 [B, 1, 1, S]. Added to the attention scores.
        self.attention_mask = additive_mask(input_mask)

    @classmethod
    def of_positions(cls, positions):
        """Returns the Rows of chosen positions, int [B, Q], in their order."""
        return cls(tf.ones_like(positions))

    def from_batch(self, batch):
        """Converts a batch to rows: [B, S, ...] -> [N, ...]."""
        rows = tf.reshape(batch, [-1, *batch.shape[2:]])
        return rows if self._indices is None else tf.gather_nd(rows, self._indices)

    def to_batch(self, rows):
        """Converts rows to a batch: [N, ...] -> [B, S, ...], with zeros for skipped padding."""
        if self._indices is not None:
            size = self._shape[0] * self._shape[1]
            rows = tf.scatter_nd(self._indices, rows, [size, *rows.shape[1:]])
        return tf.reshape(rows, [*self._shape, *rows.shape[1:]])


def shortened(batches, input_mask):
    """Truncates the tensors of a batch, [B, S], to (about) its longest sequence, [B, n]."""
    length = tf.shape(input_mask)[1]
    ends = tf.where(tf.cast(input_mask, tf.bool), tf.range(1, length + 1), 0)
    end = -(-tf.reduce_max(ends) // _MULTIPLE) * _MULTIPLE
    end = tf.clip_by_value(end, 1, length)
    return [batch[:, :end] for batch in batches]


def lengthened(batch, length):
    """Pads [B, n, ...] with zeros to [B, length, ...]."""
    missing = length - tf.shape(batch)[1]
    return tf.pad(batch, [[0, 0], [0, missing], *[[0, 0]] * (batch.shape.rank - 2)])


def shape_of(tensor):
    """Returns the shape as a list: int where it is static, else an int32 scalar Tensor."""
    return [static or tf.shape(tensor)[axis] for axis, static in enumerate(tensor.shape)]


def token_mask(inputs):
    """Returns the "input_mask" of the encoder's inputs, int [B, S]; all 1 if they have none."""
    input_mask = inputs.get("input_mask")
    if input_mask is None:
        return tf.ones_like(inputs["input_ids"])
    return tf.convert_to_tensor(input_mask)


def additive_mask(input_mask):
    """Returns the attention mask that is added to the scores: 0 for a token, -10000 for padding.

    int [B, S] -> float32 [B, 1, 1, S]. -10000 as in the reference: finite, so that a sequence of
    nothing but padding has uniform attention and not NaN.
    """
    return (1.0 - tf.cast(input_mask, tf.float32))[:, None, None, :] * -10_000.0


def _indices(input_mask):
    """Returns the indices of the rows in the flattened batch, int32 [N, 1]: tokens first."""
    is_real = tf.reshape(tf.cast(input_mask, tf.bool), [-1])
    size = tf.size(is_real)
    step = tf.maximum(-(-size // _SHARES), 1)
    number = -(-tf.reduce_sum(tf.cast(is_real, tf.int32)) // step) * step
    order = tf.concat([tf.where(is_real), tf.where(~is_real)], axis=0)  # int64 [B * S, 1]
    return tf.cast(order[: tf.minimum(number, size)], tf.int32)
