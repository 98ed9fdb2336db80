"""Texts → sequences for the encoder, in the graph: byte limit, truncation, length buckets.

Uses core operations only: `tensorflow_model_server` has no RoundRobinTrimmer.
"""

import tensorflow as tf

from data_pipeline.limits import BYTES_PER_POSITION
from data_pipeline.tokenizers.byte_bpe_graph import to_utf8
from data_pipeline.tokenizers.cleanup import class_of
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Sequences are padded to the next of these lengths, so that short texts cost little.
BUCKETS = (16, 32, 64, 128, 256, 512)

#: Bytes of the longest character. All of its bytes but the first are 10xxxxxx.
MAX_CHARACTER_BYTES, _TOP_TWO_BITS, _CONTINUATION = 4, 0xC0, 0x80

#: White space as in `str.isspace`, as a character class of RE2.
WHITE_SPACE = class_of(str.isspace)


class TextPacker:
    """Builds sequences for the encoder: truncated to S, padded to a bucket.

    With `fixed_length` all are padded to S, for models whose outputs depend on the padding.
    """

    def __init__(self, tokenizer: Tokenizer, max_seq_length: int, fixed_length: bool = False):
        self.max_seq_length, self.is_fixed = max_seq_length, fixed_length
        #: Bytes of a text that are read.
        self.max_bytes = BYTES_PER_POSITION * max_seq_length
        self._cls_id, self._sep_id = tokenizer.cls_id, tokenizer.sep_id
        self._pad_id = tokenizer.pad_id
        self.pair_separators = tokenizer.pair_separators
        #: Special tokens of a pair.
        self.num_special = tokenizer.num_special
        #: Lengths that sequences are padded to.
        shorter = [length for length in BUCKETS if length < max_seq_length]
        self.buckets = [*([] if fixed_length else shorter), max_seq_length]

    def pack(self, first, second=None, drops_empty=False):
        """Builds `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]` from ragged int32 [B, None].

        The longer text is truncated at its end, the second one if both are equally long. With
        `drops_empty` an empty second text has no [SEP] either, as in fine-tuning.

        Returns:
            dict of int32 [B, bucket]: `input_ids`, `input_mask`, `segment_ids`.
        """
        if second is None:
            return self.join(first[:, : self.max_seq_length - 2])
        lengths = tf.stack([first.row_lengths(), second.row_lengths()], axis=1)
        num_special = tf.where((lengths[:, 1] > 0) | (not drops_empty), self.num_special, 2)
        room = tf.cast(self.max_seq_length - num_special, lengths.dtype)
        left = truncated_lengths(lengths, room)
        first, second = row_slices(first, 0, left[:, 0]), row_slices(second, 0, left[:, 1])
        return self.join(first, second, drops_empty)

    def num_dropped(self, packed, num_tokens):
        """Counts the tokens of texts that are not in their sequences, int32 [B].

        Args:
            packed: As returned by `pack`.
            num_tokens: int64 [B]. Tokens of the texts of each sequence.
        """
        ids, mask = packed["input_ids"], packed["input_mask"]
        is_text = (mask > 0) & (ids != self._cls_id) & (ids != self._sep_id)
        return tf.cast(num_tokens, tf.int32) - tf.reduce_sum(tf.cast(is_text, tf.int32), axis=1)

    def join(self, first, second=None, drops_empty=False):
        """Builds the same sequences as `pack` from texts that fit already."""
        batch = first.nrows(out_type=tf.int32)
        cls, sep = (tf.fill([batch, 1], special) for special in (self._cls_id, self._sep_id))
        if second is None:
            ids = tf.concat([cls, first, sep], axis=1)
            boundary = tf.fill([batch, 1], self.max_seq_length)
        else:
            has_second = tf.cast((second.row_lengths() > 0) | (not drops_empty), tf.int64)
            last = tf.RaggedTensor.from_tensor(sep, lengths=has_second)
            more = [last] * (self.pair_separators - 1)
            ids = tf.concat([cls, first, sep, *more, second, last], axis=1)
            begins = first.row_lengths()[:, None] + 1 + self.pair_separators
            boundary = tf.cast(begins, tf.int32)
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        buckets = tf.constant(self.buckets)
        bucket = tf.reduce_min(tf.boolean_mask(buckets, buckets >= tf.reduce_max(lengths)))
        mask = tf.sequence_mask(lengths, bucket)
        positions = tf.range(bucket)[None, :]
        return {
            "input_ids": pad_to(ids.to_tensor(self._pad_id), bucket, self._pad_id),
            "input_mask": tf.cast(mask, tf.int32),
            "segment_ids": tf.cast(mask & (positions >= boundary), tf.int32),
        }


def truncated_lengths(lengths, room):
    """Returns the lengths of pairs after truncating the longer text, the second one on a tie.

    The last token is removed each time, so the beginnings remain.

    Source:
        `_truncate_seq_pair` in google-research/albert, `classifier_utils.py`.


    Args:
        lengths: int [B, 2]. Tokens of both texts, as in the result.
        room: int [B]. Tokens that both texts together may have.
    """
    first, second = lengths[:, 0], lengths[:, 1]
    second = tf.minimum(second, tf.maximum(room // 2, room - first))
    return tf.stack([tf.minimum(first, room - second), second], axis=1)


def row_slices(ragged, starts, lengths, rows=None):
    """Returns slices of rows: ragged [B, None] → ragged [n, None].

    Args:
        starts: int64 [n] or int. Position in its row at which each slice starts.
        lengths: int64 [n]. Slices must not exceed their row.
        rows: int64 [n] or None. The row of each slice; None takes one slice of each row, n = B.
    """
    begins = ragged.row_starts() if rows is None else tf.gather(ragged.row_starts(), rows)
    begins += starts
    return tf.gather(ragged.flat_values, tf.ragged.range(begins, begins + lengths))


def first_values(ragged):
    """Returns the first value of each row, string [B]; "" for an empty row."""
    return ragged[:, :1].to_tensor("", shape=[None, 1])[:, 0]


def pad_to(tensor, width, value=0):
    """Pads [B, n] at the right to [B, width]."""
    missing = tf.cast(width, tf.int32) - tf.shape(tensor)[1]
    return tf.pad(tensor, [[0, 0], [0, missing]], constant_values=value)


def readable(texts, max_bytes, from_end=False):
    """Truncates texts between two characters, and replaces bytes that are not UTF-8.

    At most `max_bytes` bytes before the replacement are kept: the first ones, or the last ones if
    `from_end`. string [B], any bytes → string [B], UTF-8.
    """
    texts = _last_bytes(texts, max_bytes) if from_end else _first_bytes(texts, max_bytes)
    return to_utf8(texts)


def unread(texts, max_bytes):
    """Returns the rest of texts after the part that `readable` returns: string [B], any bytes."""
    sizes = tf.strings.length(texts)
    begins = tf.minimum(_num_first_bytes(texts, max_bytes), sizes)
    return tf.strings.substr(texts, begins, sizes - begins)


def num_tokens_of(texts, ids, max_bytes):
    """Counts the tokens of whole texts, even if `readable` returns only a part of them.

    Args:
        texts: string [B], any bytes.
        ids: ragged [B, None]. Tokens of the part that is read.

    Returns:
        int64 [B]. If a text has more than `max_bytes` bytes, the rest is not tokenized, so that a
        long text costs little: it is assumed to have as many tokens per byte as the part that is
        read, but at least one unless it is white space.
    """
    rest = unread(texts, max_bytes)
    is_blank = tf.strings.regex_full_match(rest, f"{WHITE_SPACE}*")
    num_read, rest_bytes = ids.row_lengths(), tf.cast(tf.strings.length(rest), tf.int64)
    estimate = tf.maximum(-(-rest_bytes * num_read // max_bytes), 1)
    return num_read + tf.where(is_blank, tf.zeros_like(estimate), estimate)


def _first_bytes(texts, count):
    left = _num_first_bytes(texts, count)
    return tf.strings.substr(texts, tf.zeros_like(left), left)


def _num_first_bytes(texts, count):
    """Returns how many of the first `count` bytes end between two characters, int32 [B]."""
    is_long = tf.strings.length(texts) > count
    head = tf.strings.substr(texts, 0, count + 1)
    # The first byte after the limit must start a character; if not, the whole character is removed.
    last_four = tf.where(is_long, count + 1 - MAX_CHARACTER_BYTES, 0)
    return count - tf.where(is_long, _num_leading(_are_continuations(head, last_four)[:, ::-1]), 0)


def _last_bytes(texts, count):
    starts = tf.maximum(tf.strings.length(texts) - count, 0)
    starts += tf.where(starts > 0, _num_leading(_are_continuations(texts, starts)), 0)
    return tf.strings.substr(texts, starts, tf.fill(tf.shape(starts), count))


def _are_continuations(texts, starts):
    """Returns which of the four bytes from `starts` on do not start a character, bool [B, 4]."""
    four = tf.strings.substr(texts, starts, tf.fill(tf.shape(starts), MAX_CHARACTER_BYTES))
    four = tf.strings.join([four, "\0" * MAX_CHARACTER_BYTES])
    four = tf.strings.substr(four, 0, MAX_CHARACTER_BYTES)
    four = tf.reshape(tf.io.decode_raw(four, tf.uint8), [-1, MAX_CHARACTER_BYTES])
    return tf.bitwise.bitwise_and(four, _TOP_TWO_BITS) == _CONTINUATION


def _num_leading(flags):
    """Counts the true values before the first false one, int32 [B]; 0 if all are true."""
    leading = tf.reduce_sum(tf.math.cumprod(tf.cast(flags, tf.int32), axis=1), axis=1)
    return leading % MAX_CHARACTER_BYTES
