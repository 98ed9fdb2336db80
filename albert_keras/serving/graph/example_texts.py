"""Texts in serialized tf.Examples, read in the graph.

TensorFlow's parsing operations raise an error for invalid bytes. Here the message is never copied;
only offsets into it are computed, so that a long one costs little.
"""

import tensorflow as tf

from albert_keras.layers.text_packing import MAX_CHARACTER_BYTES

#: Fields of a protocol buffer that are read, such as features of a tf.Example.
MAX_FIELDS = 64

_VARINT = 5  # maximum number of bytes of a length below 2**31


def texts_of_examples(examples: tf.Tensor, name: str, max_bytes: int) -> tf.Tensor:
    """Reads a text feature of serialized tf.Examples.

    Everything after a field that is neither text nor a message is ignored.

    Args:
        examples: string [B], any bytes.
        name: Name of the feature, which must be among the first `MAX_FIELDS`.
        max_bytes: Bytes of a text that the model reads; a few more are returned, so that it finds
            where to truncate.

    Returns:
        string [B]. The first value; "" if there is none or it is not a text.
    """
    sizes = tf.strings.length(examples)
    features = _first_field(examples, (tf.zeros_like(sizes), sizes), 1)
    name_bytes = len(name.encode())

    def read(begins, ends):
        number, entry, begins = _field(examples, begins, ends)
        key_begins, key_ends = _first_field(examples, entry, 1)
        key_sizes = tf.minimum(key_ends - key_begins, name_bytes + 1)
        key = tf.strings.substr(examples, key_begins, key_sizes)
        return (number == 1) & (key == name), _first_field(examples, entry, 2), begins

    feature = _first_match(read, features)
    # A feature contains a list of bytes, which contains the values.
    begins, ends = _first_field(examples, _first_field(examples, feature, 1), 1)
    lengths = tf.minimum(ends - begins, max_bytes + MAX_CHARACTER_BYTES)
    return tf.strings.substr(examples, begins, lengths)


def _first_field(examples, message, number):
    """Returns begin and end of the first field with a number, int32 [B] each; 0 for none."""

    def read(begins, ends):
        which, value, begins = _field(examples, begins, ends)
        return which == number, value, begins

    return _first_match(read, message)


def _first_match(read, message):
    """Reads fields of messages (begin and end of each) until each message has a match.

    `read` reads the field at `begins` of messages that end at `ends`, int32 [B] each; it returns
    whether it matches (bool [B]), its value (begins, ends), and where the next field begins.

    Returns:
        Begin and end of the value of the first match, int32 [B] each; 0 for none.
    """
    begins, ends = message

    def step(number, begins, is_found, *found):
        matches, value, begins = read(begins, ends)
        is_new = matches & ~is_found
        found = [tf.where(is_new, new, old) for new, old in zip(value, found, strict=True)]
        return number + 1, begins, is_found | is_new, *found

    def is_unfinished(number, begins, is_found, *_):
        return (number < MAX_FIELDS) & tf.reduce_any((begins < ends) & ~is_found)

    nothing = tf.zeros_like(begins)
    state = (0, begins, tf.zeros_like(begins, tf.bool), nothing, nothing)
    return tf.while_loop(is_unfinished, step, state)[-2:]


def _field(examples, begins, ends):
    """Reads one field of each message.

    Returns:
        Its number, 0 if it is neither text nor a message; begin and end of its value; and where the
        next field begins; all int32 [B].
    """
    head = tf.strings.substr(examples, begins, tf.minimum(ends - begins, 1 + _VARINT))
    head = tf.strings.substr(tf.strings.join([head, "\0" * (1 + _VARINT)]), 0, 1 + _VARINT)
    head = tf.reshape(tf.io.decode_raw(head, tf.uint8), [-1, 1 + _VARINT])
    tag, head = tf.cast(head[:, 0], tf.int32), tf.cast(head[:, 1:], tf.int64)
    is_part = tf.math.cumprod(tf.cast(head >= 128, tf.int64), axis=1, exclusive=True)
    digits = tf.bitwise.bitwise_and(head, 127) * is_part
    length = tf.reduce_sum(digits * 128 ** tf.range(_VARINT, dtype=tf.int64), axis=1)
    starts = begins + 1 + tf.cast(tf.reduce_sum(is_part, axis=1), tf.int32)
    is_text = (begins < ends) & (tag < 128) & (tag % 8 == 2)
    is_text &= tf.cast(starts, tf.int64) + length <= tf.cast(ends, tf.int64)
    starts = tf.where(is_text, starts, 0)
    stops = starts + tf.cast(tf.where(is_text, length, 0), tf.int32)
    return tf.where(is_text, tag // 8, 0), (starts, stops), tf.where(is_text, stops, ends)
