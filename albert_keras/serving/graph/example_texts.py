"""Texts out of serialized tf.Examples, in the graph.

TensorFlow's parsing operations raise for bytes that are none. Places are followed in the message as
it came, so that a long one is never copied.
"""

import tensorflow as tf

from albert_keras.serving.graph.text_packing import LONGEST_CHARACTER

#: Fields of a protocol buffer that are read, such as features of a tf.Example.
MAX_FIELDS = 64

_VARINT = 5  # bytes at most, of a length below 2**31


def texts_of_examples(examples, name, max_bytes):
    """Reads a text out of serialized tf.Examples.

    What comes after something that is neither a text nor a message is not read.

    Args:
        examples: string [B]. Any bytes.
        name: str. A feature, of `MAX_FIELDS` at most.
        max_bytes: int. What the model reads of a text; a few more remain of each, so that it sees
            where to cut.

    Returns:
        string [B]. Its first value; "" where there is none or it is no text.
    """
    sizes = tf.strings.length(examples)
    features = _first_field(examples, (tf.zeros_like(sizes), sizes), 1)
    name_bytes = len(name.encode())

    def read(step, begins, ends, is_found, *found):
        number, entry, begins = _field(examples, begins, ends)
        key_begins, key_ends = _first_field(examples, entry, 1)
        key = tf.strings.substr(
            examples, key_begins, tf.minimum(key_ends - key_begins, name_bytes + 1)
        )
        is_meant = (number == 1) & ~is_found & (key == name)
        feature = _first_field(examples, entry, 2)
        found = [tf.where(is_meant, new, old) for new, old in zip(feature, found, strict=True)]
        return step + 1, begins, ends, is_found | is_meant, *found

    feature = _until_found(read, features)
    # The list of bytes in the feature, the first value in that.
    begins, ends = _first_field(examples, _first_field(examples, feature, 1), 1)
    lengths = tf.minimum(ends - begins, max_bytes + LONGEST_CHARACTER)
    return tf.strings.substr(examples, begins, lengths)


def _first_field(examples, message, number):
    """Returns where the first field of a number begins and ends, int32 [B] each; 0 for none."""

    def read(step, begins, ends, is_found, *found):
        which, value, begins = _field(examples, begins, ends)
        is_new = (which == number) & ~is_found
        found = [tf.where(is_new, new, old) for new, old in zip(value, found, strict=True)]
        return step + 1, begins, ends, is_found | is_new, *found

    return _until_found(read, message)


def _until_found(read, message):
    """Reads fields of messages (where each begins and ends) until all found what they look for."""
    begins, ends = message
    nothing = tf.zeros_like(begins)
    *_, found_begins, found_ends = tf.while_loop(
        lambda step, begins, ends, is_found, *_: (
            (step < MAX_FIELDS) & tf.reduce_any((begins < ends) & ~is_found)
        ),
        read,
        (0, begins, ends, tf.zeros_like(begins, tf.bool), nothing, nothing),
    )
    return found_begins, found_ends


def _field(examples, begins, ends):
    """Reads one field of each message.

    Returns:
        tuple. Its number, 0 if it is no text or message; where its value begins and ends; and where
        the next field begins; int32 [B] all.
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
