"""Pre-trained models that take plain strings: fill masks, predict the order of sentences."""

import tensorflow as tf

from albert_keras.layers.text_packing import first_values, num_tokens_of, pad_to, readable
from albert_keras.serving.graph.string_model import StringModel, string_function
from albert_keras.serving.layout import MASK_LITERAL, TOP_K


class TextModel(StringModel):
    """Signatures of a pre-trained model.

    fill_mask, also serving_default  see `_fill_mask`
    sentence_order  if the model has this head: `first` and `second` string [B] → `in_order`
                    float32 [B], the probability of this order

    The model is an AlbertForPretraining; other arguments are as of `StringModel`.
    """

    def _functions(self):
        fill_mask = string_function(self._fill_mask, "text")
        signatures = {"serving_default": fill_mask, "fill_mask": fill_mask}
        if self.stored.has_sentence_head:
            signatures["sentence_order"] = string_function(self._order, "first", "second")
        return signatures

    def _order(self, first, second):
        packed, dropped = self.sequences_of(first, second)
        in_order = tf.nn.softmax(self.stored.sentence_order(packed))[:, 0]
        return {"in_order": in_order, "dropped_tokens": dropped}

    def _fill_mask(self, text):
        """Returns the most likely pieces for each [MASK], and the text with masks filled.

        Args:
            text: string [B]. Each may contain any number of `[MASK]`.

        Returns:
            dict. `pieces` string and `scores` float32 [B, M, 10], M the largest number of masks in
            the batch; empty and 0 where a text has fewer masks, or was truncated before the mask.
            `filled_text` string [B], of the part that is read, `TextPacker.max_bytes`. And
            `dropped_tokens`.
        """
        packed, dropped, before, rest = self.masked_sequences(text)
        width = tf.cast(tf.reduce_max(rest.row_lengths()), tf.int32)
        pieces, scores, visible = self._candidates(packed, width)
        words = self.tokenizer.without_marks(pieces[:, :, 0])
        words = tf.where(visible, words, MASK_LITERAL)
        words = tf.RaggedTensor.from_tensor(words, lengths=rest.row_lengths())
        tail = rest.with_flat_values(tf.strings.join([words.flat_values, rest.flat_values]))
        filled = tf.strings.join([before, tf.strings.reduce_join(tail, axis=1)])
        return {
            "pieces": pieces,
            "scores": scores,
            "filled_text": filled,
            "dropped_tokens": dropped,
        }

    def masked_sequences(self, text):
        """Builds the sequences of texts, string [B], in which `[MASK]` is the id of the mask.

        Returns:
            dict, as `TextPacker.pack`; int32 [B], the tokens that are not in the sequence; string
            [B] and ragged string [B, None], the text before the first mask and after each of them.
        """
        parts = tf.strings.split(readable(text, self.packer.max_bytes), MASK_LITERAL)
        before, rest = first_values(parts), parts[:, 1:]
        ids_after = self.tokenizer.continuation(self._before_masks(rest))  # [all masks, None]
        masks = tf.fill([tf.shape(rest.flat_values)[0], 1], self.rows.tokenizer.mask_id)
        after = rest.with_flat_values(tf.concat([masks, ids_after], axis=1)).merge_dims(1, 2)
        has_mask = rest.row_lengths() > 0
        before_mask = tf.where(has_mask, self.tokenizer.before_mask(before), before)
        ids = tf.concat([self.tokenizer(before_mask), after], axis=1)
        packed = self.packer.pack(ids)
        dropped = self.packer.num_dropped(packed, num_tokens_of(text, ids, self.packer.max_bytes))
        return packed, dropped, before, rest

    def _before_masks(self, rest):
        """Returns the values of parts of texts, ragged string [B, None], as they are tokenized.

        Another mask follows all parts of a row but the last.
        """
        texts = rest.flat_values
        positions = tf.range(tf.size(texts, rest.row_splits.dtype))
        is_last = positions == tf.gather(rest.row_limits() - 1, rest.value_rowids())
        return tf.where(is_last, texts, self.tokenizer.before_mask(texts))

    def _candidates(self, packed, width):
        """Returns the most likely pieces at the M masks of each sequence; M is at least `width`.

        These are string and float32 [B, M, 10], and bool [B, M], which is False for no mask.
        """
        is_mask = packed["input_ids"] == self.rows.tokenizer.mask_id
        found = tf.cast(tf.where(is_mask), tf.int32)  # [n, 2]
        batch = tf.shape(packed["input_ids"])[0]
        positions = tf.RaggedTensor.from_value_rowids(found[:, 1], found[:, 0], batch)
        counts = tf.cast(positions.row_lengths(), tf.int32)
        most = tf.maximum(tf.reduce_max(counts), 1)
        # A text of many masks has many beyond the end of its sequence: nothing is computed there.
        logits = self.stored.masked_lm(packed, pad_to(positions.to_tensor(), most))
        scores, ids = tf.math.top_k(tf.nn.softmax(logits), k=TOP_K)  # [B, most, 10]
        width = tf.maximum(most, width)  # M
        more = [[0, 0], [0, width - most], [0, 0]]
        pieces = tf.pad(tf.gather(self.tokenizer.pieces, ids), more, constant_values="")
        visible = tf.sequence_mask(counts, width)  # [B, M]
        pieces = tf.where(visible[:, :, None], pieces, "")
        return pieces, tf.where(visible[:, :, None], tf.pad(scores, more), 0.0), visible
