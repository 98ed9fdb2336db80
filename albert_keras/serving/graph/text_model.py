"""Pre-trained models that take plain strings: masks filled, sentences put in order."""

import tensorflow as tf

from albert_keras.serving.graph.string_model import StringModel, string_function
from albert_keras.serving.graph.text_packing import first_values, pad_to, readable
from albert_keras.serving.layout import MASK_LITERAL, TOP_K


class TextModel(StringModel):
    """Signatures of a pre-trained model.

    fill_mask, also serving_default, see `_fill_mask`; sentence_order, if the model has such a head:
    `first` and `second` string [B] → `in_order` float32 [B]; those of `StringModel`, of which
    predict_tokens gives `pieces` and `scores` as fill_mask does.

    Args:
        model: AlbertForPretraining, float32.
        tokenizer, max_seq_length, precision, layers: As of `StringModel`.
    """

    def __init__(self, model, tokenizer, max_seq_length, precision="float32", layers=()):
        self._mask_id = tokenizer.mask_id
        super().__init__(model, tokenizer, max_seq_length, precision, layers)

    def _functions(self):
        fill_mask = string_function(self._fill_mask, "text")
        signatures = {"serving_default": fill_mask, "fill_mask": fill_mask}
        if self.stored.has_sentence_head:
            signatures["sentence_order"] = string_function(self._order, "first", "second")
        return signatures

    def _order(self, first, second):
        packed = self._pack(self.ids(first), self.ids(second))
        return {"in_order": tf.nn.softmax(self.stored.sentence_order(packed))[:, 0]}

    def _predict_tokens(self, packed):
        pieces, scores, _ = self._candidates(packed)
        return {"pieces": pieces, "scores": scores}

    def _fill_mask(self, text):
        """Returns for each [MASK] its likeliest pieces, and the text with the likeliest filled in.

        Args:
            text: string [B]. Each may hold any number of `[MASK]`.

        Returns:
            dict. `pieces` string and `scores` float32 [B, M, 10], M the largest number of masks in
            the batch; empty and 0 where a text has fewer, or where it was cut off before the
            mask. `filled_text` string [B], of what is read, `TextPacker.max_bytes`.
        """
        read = tf.strings.split(readable(text, self.packer.max_bytes), MASK_LITERAL)
        before, rest = first_values(read), read[:, 1:]
        pieces_after = self.tokenizer.continuation(rest.flat_values)  # [all masks, pieces]
        masks = tf.fill([tf.shape(rest.flat_values)[0], 1], self._mask_id)
        after = rest.with_flat_values(tf.concat([masks, pieces_after], axis=1)).merge_dims(1, 2)
        packed = self._pack(tf.concat([self.tokenizer(before), after], axis=1))

        width = tf.cast(tf.reduce_max(rest.row_lengths()), tf.int32)
        pieces, scores, visible = self._candidates(packed, width)
        words = self.tokenizer.without_marks(pieces[:, :, 0])
        words = tf.where(visible, words, MASK_LITERAL)
        words = tf.RaggedTensor.from_tensor(words, lengths=rest.row_lengths())
        tail = rest.with_flat_values(tf.strings.join([words.flat_values, rest.flat_values]))
        filled = tf.strings.join([before, tf.strings.reduce_join(tail, axis=1)])
        return {"pieces": pieces, "scores": scores, "filled_text": filled}

    def _candidates(self, packed, width=0):
        """Finds the likeliest pieces at each mask of some rows.

        Args:
            packed: dict of int32 [B, S].
            width: int32. M at least.

        Returns:
            tuple. string and float32 [B, M, 10], and bool [B, M], where there are masks.
        """
        found = tf.cast(tf.where(packed["input_ids"] == self._mask_id), tf.int32)  # [n, 2]
        batch = tf.shape(packed["input_ids"])[0]
        positions = tf.RaggedTensor.from_value_rowids(found[:, 1], found[:, 0], batch)
        counts = tf.cast(positions.row_lengths(), tf.int32)
        most = tf.maximum(tf.reduce_max(counts), 1)
        # Masks that were cut off are many where a text is of masks alone: nothing of theirs is
        # computed.
        logits = self.stored.masked_lm(packed, pad_to(positions.to_tensor(), most))
        scores, ids = tf.math.top_k(tf.nn.softmax(logits), k=TOP_K)  # [B, most, 10]
        width = tf.maximum(most, width)  # M
        more = [[0, 0], [0, width - most], [0, 0]]
        pieces = tf.pad(tf.gather(self.tokenizer.pieces, ids), more, constant_values="")
        visible = tf.sequence_mask(counts, width)  # [B, M]
        pieces = tf.where(visible[:, :, None], pieces, "")
        return pieces, tf.where(visible[:, :, None], tf.pad(scores, more), 0.0), visible
