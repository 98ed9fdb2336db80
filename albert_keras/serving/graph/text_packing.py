"""Texts → rows for the encoder, in the graph: the byte cut, truncation, length buckets.

Of core operations only: `tensorflow_model_server` has no RoundRobinTrimmer.
"""

import tensorflow as tf

from data_pipeline.tokenizers.cleanup import white_space_ranges

#: Sequences are padded to the next of these lengths, so that short texts cost little.
BUCKETS = (16, 32, 64, 128, 256, 512)
#: Bytes of a text that are read for each place of a row; hardly any text has so few pieces.
BYTES_PER_PLACE = 32

_REPLACEMENT = 0xFFFD
#: Bytes of the longest character, and those that go on with one: 10xxxxxx.
LONGEST_CHARACTER, _TOP_TWO_BITS, _GOES_ON = 4, 0xC0, 0x80


def character_class(ranges):
    """Writes code points, as (first, last) pairs, as a class of RE2 (str)."""
    return "[" + "".join(rf"\x{{{first:x}}}-\x{{{last:x}}}" for first, last in ranges) + "]"


#: What `str.isspace` calls white space, as a class of RE2.
WHITE_SPACE = character_class(white_space_ranges())


class TextPacker:
    """Lays out rows as the encoder wants them, cut to S, padded to a bucket.

    Args:
        tokenizer: Tokenizer. Of its symbols rows are made.
        max_seq_length: int. Places of a row at most, S.

    Attributes:
        max_seq_length: int. S.
        max_bytes: int. Bytes of a text that are read.
    """

    def __init__(self, tokenizer, max_seq_length):
        self.max_seq_length = max_seq_length
        self.max_bytes = BYTES_PER_PLACE * max_seq_length
        self._cls_id, self._sep_id = tokenizer.cls_id, tokenizer.sep_id
        self._pad_id = tokenizer.pad_id
        self._buckets = [length for length in BUCKETS if length < max_seq_length]
        self._buckets.append(max_seq_length)

    def pack(self, first, second=None, drops_empty=False):
        """Lays out `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.

        The longer text loses pieces at its end, the second one on a tie.

        Args:
            first: ragged int32 [B, None].
            second: ragged int32 [B, None] or None.
            drops_empty: bool. Whether a second text without pieces has no [SEP] either, as in
                the rows of fine-tuning.

        Returns:
            dict of int32 [B, bucket]: `input_ids`, `input_mask`, `segment_ids`.
        """
        if second is None:
            return self.lay_out(first[:, : self.max_seq_length - 2])
        lengths = tf.stack([first.row_lengths(), second.row_lengths()], axis=1)
        symbols = tf.where((lengths[:, 1] > 0) | (not drops_empty), 3, 2)
        room = tf.cast(self.max_seq_length - symbols, lengths.dtype)
        left = truncated_lengths(lengths, room)
        return self.lay_out(
            pieces_from(first, 0, left[:, 0]), pieces_from(second, 0, left[:, 1]), drops_empty
        )

    def lay_out(self, first, second=None, drops_empty=False):
        """Does as `pack` with texts that fit already."""
        batch = first.nrows(out_type=tf.int32)
        cls, sep = (tf.fill([batch, 1], special) for special in (self._cls_id, self._sep_id))
        if second is None:
            ids = tf.concat([cls, first, sep], axis=1)
            boundary = tf.fill([batch, 1], self.max_seq_length)
        else:
            has_second = (second.row_lengths() > 0) | (not drops_empty)
            last = tf.RaggedTensor.from_tensor(sep, lengths=tf.cast(has_second, tf.int64))
            ids = tf.concat([cls, first, sep, second, last], axis=1)
            boundary = tf.cast(first.row_lengths()[:, None], tf.int32) + 2
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        buckets = tf.constant(self._buckets)
        bucket = tf.reduce_min(tf.boolean_mask(buckets, buckets >= tf.reduce_max(lengths)))
        mask = tf.sequence_mask(lengths, bucket)
        place = tf.range(bucket)[None, :]
        return {
            "input_ids": pad_to(ids.to_tensor(self._pad_id), bucket, self._pad_id),
            "input_mask": tf.cast(mask, tf.int32),
            "segment_ids": tf.cast(mask & (place >= boundary), tf.int32),
        }


def truncated_lengths(lengths, room):
    """Tells what remains of pairs; `truncated_lengths` of `tasks/pair_features.py` in the graph.

    Args:
        lengths: int [B, 2]. Pieces of both texts.
        room: int [B]. Pieces for both together.

    Returns:
        int [B, 2].
    """
    first, second = lengths[:, 0], lengths[:, 1]
    second = tf.minimum(second, tf.maximum(room // 2, room - first))
    return tf.stack([tf.minimum(first, room - second), second], axis=1)


def pieces_from(ids, starts, lengths, rows=None):
    """Takes a stretch of each of some rows.

    Args:
        ids: ragged [B, None].
        starts: int64 [n] or int. The first piece of each stretch in its row.
        lengths: int64 [n]. Not beyond the end of the row.
        rows: int64 [n] or None. Which row each is of; None is one of each, n = B.

    Returns:
        ragged [n, None].
    """
    begins = ids.row_starts() if rows is None else tf.gather(ids.row_starts(), rows)
    begins += starts
    return tf.gather(ids.flat_values, tf.ragged.range(begins, begins + lengths))


def first_values(ragged):
    """Returns the first of each row, string [B]; "" of an empty one."""
    return ragged[:, :1].to_tensor("", shape=[None, 1])[:, 0]


def ragged_cumsum(ragged):
    """Sums up each row from its start: ragged int64 [B, None] of the same shape."""
    sums = tf.cumsum(ragged.flat_values)
    before = tf.gather(tf.concat([[0], sums], 0), ragged.row_starts())
    return ragged.with_flat_values(sums - tf.gather(before, ragged.value_rowids()))


def pad_to(tensor, width, value=0):
    """Pads [B, n] at the right to [B, width]."""
    missing = tf.cast(width, tf.int32) - tf.shape(tensor)[1]
    return tf.pad(tensor, [[0, 0], [0, missing]], constant_values=value)


def readable(texts, max_bytes, from_end=False):
    """Cuts texts at the edge of a character, and replaces what is not UTF-8.

    Args:
        texts: string [B]. Any bytes.
        max_bytes: int or None. What remains of each, before the replacement; None is all.
        from_end: bool. Whether the last bytes remain, not the first ones.

    Returns:
        string [B]. UTF-8.
    """
    if max_bytes is not None:
        texts = _last_bytes(texts, max_bytes) if from_end else _first_bytes(texts, max_bytes)
    return tf.strings.unicode_transcode(
        texts, "UTF-8", "UTF-8", errors="replace", replacement_char=_REPLACEMENT
    )


def _first_bytes(texts, count):
    is_long = tf.strings.length(texts) > count
    head = tf.strings.substr(texts, 0, count + 1)
    # The first byte that goes begins a character, or else all the character's bytes go.
    goes_on = _goes_on(head, tf.where(is_long, count + 1 - LONGEST_CHARACTER, 0))[:, ::-1]
    left = count - tf.where(is_long, _leading(goes_on), 0)
    return tf.strings.substr(head, tf.zeros_like(left), left)


def _last_bytes(texts, count):
    starts = tf.maximum(tf.strings.length(texts) - count, 0)
    goes_on = _goes_on(texts, starts)
    starts += tf.where(starts > 0, _leading(goes_on), 0)
    return tf.strings.substr(texts, starts, tf.fill(tf.shape(starts), count))


def _goes_on(texts, starts):
    """Tells of four bytes from `starts` on which go on with a character, bool [B, 4]."""
    four = tf.strings.substr(texts, starts, tf.fill(tf.shape(starts), LONGEST_CHARACTER))
    four = tf.strings.substr(
        tf.strings.join([four, "\0" * LONGEST_CHARACTER]), 0, LONGEST_CHARACTER
    )
    four = tf.reshape(tf.io.decode_raw(four, tf.uint8), [-1, LONGEST_CHARACTER])
    return tf.bitwise.bitwise_and(four, _TOP_TWO_BITS) == _GOES_ON


def _leading(goes_on):
    """Counts the bytes that go on before the first that does not, int32 [B]; 0 if all do."""
    leading = tf.reduce_sum(tf.math.cumprod(tf.cast(goes_on, tf.int32), axis=1), axis=1)
    return leading % LONGEST_CHARACTER
