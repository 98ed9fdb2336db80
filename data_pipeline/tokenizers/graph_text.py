"""What both tokenizers do with text in a TensorFlow graph, as Python does it."""

import tensorflow as tf

#: Where the bytes are not UTF-8, as in Python's `decode(errors="replace")`.
_REPLACEMENT = 0xFFFD

#: Letters that `tf.strings.lower` lowers by the language of the process: with LANG=tr_TR it makes
#: `ı` of `I`, and Lithuanian puts dots under accents. All but the first have accents themselves.
_LOCALE_LETTERS = tuple((capital, capital.lower()) for capital in "IİJĮÌÍĨ")


def character_class(ranges):
    """Writes code points, as (first, last) pairs, as a class of RE2 (str)."""
    return "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges) + "]"


def to_utf8(texts):
    """Replaces what is not UTF-8 in texts, string [B], by U+FFFD."""
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=_REPLACEMENT
    )


def lower(texts, has_accents=True):
    """Lowers letters as `str.lower` does, whatever the language of the process.

    Args:
        texts: string [B]. UTF-8, without NUL, at which `tf.strings.lower` ends a text.
        has_accents: bool. Whether letters in them have accents.

    Returns:
        string [B].
    """
    for capital, letter in _LOCALE_LETTERS[: None if has_accents else 1]:
        texts = tf.strings.regex_replace(texts, capital, letter)
    return tf.strings.lower(texts, encoding="utf-8")
