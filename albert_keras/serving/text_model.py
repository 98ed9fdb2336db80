"""A pre-trained model that takes plain strings: tokenizer, packing and heads in one graph.

Made of core operations and of tensorflow-text's SentencePiece only, so that
`tensorflow_model_server` can load it; its RoundRobinTrimmer, for one, is missing there.
"""

import tensorflow as tf

from albert_keras.serving.layout import MASK_LITERAL, TOP_K
from albert_keras.serving.precision import StoredModel
from data_pipeline.graph_tokenization import GraphTokenizer

#: Sequences are padded to the next of these lengths, so that short texts cost little.
BUCKETS = (16, 32, 64, 128, 256, 512)


class TextModel(tf.Module):
    """Signatures over plain strings, batch dimension free.

    Args:
        model: AlbertForPretraining, float32.
        tokenizer: Tokenizer.
        max_seq_length: int. Longer texts are cut to it, [CLS] and [SEP] included, S.
        precision: str. How the weights are stored and used, see `StoredModel`.

    Attributes:
        stored: StoredModel.
        functions: dict of name -> tf.function. The signatures.
    """

    def __init__(self, model, tokenizer, max_seq_length, precision="float32"):
        super().__init__(name="text_model")
        self.tokenizer = GraphTokenizer(tokenizer)
        # The weights alone are tracked: a Keras model as an attribute would be saved a second
        # time, with all its call functions.
        self.stored = StoredModel(model, precision)
        self.weights = self.stored.variables
        self._max_seq_length = max_seq_length
        buckets = [length for length in BUCKETS if length < max_seq_length] + [max_seq_length]
        self._buckets = tf.constant(buckets, name="buckets")
        self._cls_id, self._sep_id = tokenizer.cls_id, tokenizer.sep_id
        self._mask_id = tokenizer.mask_id
        self.functions = self._functions()

    def _functions(self):
        text = tf.TensorSpec([None], tf.string, name="text")
        first = tf.TensorSpec([None], tf.string, name="first")
        second = tf.TensorSpec([None], tf.string, name="second")

        @tf.function(input_signature=[text])
        def fill_mask(text):
            return self._fill_mask(text)

        @tf.function(input_signature=[text])
        def encode(text):
            pooled = self.stored.pooled(self._pack(self.tokenizer(text)))
            return {"pooled_output": tf.cast(pooled, tf.float32)}

        signatures = {"serving_default": fill_mask, "fill_mask": fill_mask, "encode": encode}
        if self.stored.has_sentence_head:

            @tf.function(input_signature=[first, second])
            def sentence_order(first, second):
                packed = self._pack(self.tokenizer(first), self.tokenizer(second))
                return {"in_order": tf.nn.softmax(self.stored.sentence_order(packed))[:, 0]}

            signatures["sentence_order"] = sentence_order
        return signatures

    def _fill_mask(self, text):
        """Returns for each [MASK] its likeliest pieces, and the text with the likeliest filled in.

        Args:
            text: string [B]. Each may hold any number of `[MASK]`.

        Returns:
            dict. `pieces` string and `scores` float32 [B, M, 10], M the largest number of masks in
            the batch; empty and 0 where a text has fewer, or where it was cut off before the
            mask. `filled_text` string [B].
        """
        parts = tf.strings.split(text, MASK_LITERAL)  # [B, masks + 1]
        before, rest = parts[:, :1].to_tensor("", shape=[None, 1])[:, 0], parts[:, 1:]
        after = self.tokenizer.continuation(rest.flat_values)  # [all masks, pieces]
        masks = tf.fill([tf.shape(rest.flat_values)[0], 1], self._mask_id)
        after = rest.with_flat_values(tf.concat([masks, after], axis=1)).merge_dims(1, 2)
        packed = self._pack(tf.concat([self.tokenizer(before), after], axis=1))

        found = tf.cast(tf.where(packed["input_ids"] == self._mask_id), tf.int32)  # [n, 2]
        batch = tf.shape(text)[0]
        positions = tf.RaggedTensor.from_value_rowids(found[:, 1], found[:, 0], batch)
        width = tf.maximum(tf.reduce_max(rest.row_lengths()), 1)  # M
        visible = tf.sequence_mask(positions.row_lengths(), width)  # [B, M]
        positions = _pad_to(positions.to_tensor(), width)
        logits = self.stored.masked_lm(packed, positions)
        scores, ids = tf.math.top_k(tf.nn.softmax(logits), k=TOP_K)  # [B, M, 10]
        pieces = tf.gather(self.tokenizer.pieces, ids)
        pieces = tf.where(visible[:, :, None], pieces, "")
        scores = tf.where(visible[:, :, None], scores, 0.0)

        words = tf.strings.regex_replace(pieces[:, :, 0], "▁", "")
        words = tf.where(visible, words, MASK_LITERAL)
        words = tf.RaggedTensor.from_tensor(words, lengths=rest.row_lengths())
        tail = rest.with_flat_values(tf.strings.join([words.flat_values, rest.flat_values]))
        filled = tf.strings.join([before, tf.strings.reduce_join(tail, axis=1)])
        return {"pieces": pieces, "scores": scores, "filled_text": filled}

    def _pack(self, first, second=None):
        """Lays out `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, cut to S, padded to a bucket.

        The longer text loses pieces at its end, the second one on a tie.

        Args:
            first: ragged int32 [B, None].
            second: ragged int32 [B, None] or None.

        Returns:
            dict of int32 [B, bucket]: `input_ids`, `input_mask`, `segment_ids`.
        """
        batch = first.nrows(out_type=tf.int32)
        cls, sep = (tf.fill([batch, 1], special) for special in (self._cls_id, self._sep_id))
        if second is None:
            first = first[:, : self._max_seq_length - 2]
            ids = tf.concat([cls, first, sep], axis=1)
            boundary = tf.fill([batch, 1], self._max_seq_length)
        else:
            first, second = self._truncate(first, second, self._max_seq_length - 3)
            ids = tf.concat([cls, first, sep, second, sep], axis=1)
            boundary = tf.cast(first.row_lengths()[:, None], tf.int32) + 2
        lengths = tf.cast(ids.row_lengths(), tf.int32)
        longest = tf.reduce_max(lengths)
        bucket = tf.reduce_min(tf.boolean_mask(self._buckets, self._buckets >= longest))
        mask = tf.sequence_mask(lengths, bucket)
        place = tf.range(bucket)[None, :]
        return {
            "input_ids": _pad_to(ids.to_tensor(), bucket),
            "input_mask": tf.cast(mask, tf.int32),
            "segment_ids": tf.cast(mask & (place >= boundary), tf.int32),
        }

    def _truncate(self, first, second, room):
        """Cuts two ragged texts as `data_pipeline.packing.truncate_pairs` does, at their ends."""
        lengths = tf.stack([first.row_lengths(), second.row_lengths()], axis=1)  # [B, 2]
        shorter = tf.reduce_min(lengths, axis=1)
        left = tf.minimum(lengths, tf.maximum(shorter, room - shorter)[:, None])
        surplus = tf.maximum(tf.reduce_sum(left, axis=1) - room, 0)
        left -= tf.stack([surplus // 2, surplus - surplus // 2], axis=1)
        return (
            tf.RaggedTensor.from_tensor(text.to_tensor(), lengths=left[:, number])
            for number, text in enumerate((first, second))
        )


def _pad_to(tensor, width):
    """Pads an int32 [B, n] with zeros at the right to [B, width]."""
    missing = tf.cast(width, tf.int32) - tf.shape(tensor)[1]
    return tf.pad(tensor, [[0, 0], [0, missing]])
