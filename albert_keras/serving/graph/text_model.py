"""Models that take plain strings: tokenizer, packing and heads in one graph.

Made of core operations and of tensorflow-text's SentencePiece only, so that
`tensorflow_model_server` can load it. Here are what all such models answer, and the pre-trained
ones; those of tasks are in `task_model.py`.
"""

import tensorflow as tf

from albert_keras.serving.graph.precision import StoredModel
from albert_keras.serving.graph.text_packing import TextPacker, first_values, pad_to, readable
from albert_keras.serving.layout import MASK_LITERAL, TOP_K
from data_pipeline.graph_tokenization import GraphTokenizer


class StringModel(tf.Module):
    """Base of the models: signatures over plain strings, batch dimension free.

    Of each text `TextPacker.max_bytes` bytes are read, and what is not UTF-8 is U+FFFD. Whatever
    the content, nothing raises.

    encode          `text` string [B], or what a subclass takes → `pooled_output` and
                    `mean_output` float32 [B, H], the latter the mean over all real places;
                    `sequence_output` float32 [B, bucket, H]
    explain_tokens  likewise → `pieces` string and `ids` int32 [B, bucket], what the encoder
                    reads; "" and the id of padding fill up
    predict_tokens  `input_ids`, `input_mask`, `segment_ids` int32 [B, S] → what a subclass says

    Args:
        model: AlbertForPretraining or AlbertForTask, float32.
        tokenizer: Tokenizer.
        max_seq_length: int. Longer texts are cut to it, [CLS] and [SEP] included, S.
        precision: str. How the weights are stored and used, see `StoredModel`.
        graph_tokenizer: GraphTokenizer or None. Made of `tokenizer` if None.

    Attributes:
        stored: StoredModel.
        functions: dict of name -> tf.function. The signatures over strings.
        token_functions: dict of name -> tf.function. Those over ids.
    """

    #: Places of a row of `predict_tokens`: [B, S].
    _ids_shape = (None, None)

    def __init__(self, model, tokenizer, max_seq_length, precision, graph_tokenizer=None):
        super().__init__(name="string_model")
        self.tokenizer = graph_tokenizer or GraphTokenizer(tokenizer)
        # The weights alone are tracked: a Keras model as an attribute would be saved a second
        # time, with all its call functions.
        self.stored = StoredModel(model, precision)
        self.weights = self.stored.variables
        self.packer = TextPacker(tokenizer, max_seq_length)
        self._unk_id = tokenizer.unk_id
        self.functions = self._functions() | {
            "encode": string_function(self._encode, "text"),
            "explain_tokens": string_function(self._explain_tokens, "text"),
        }
        self.token_functions = {"predict_tokens": self._token_function()}

    def _functions(self):
        """Returns the signatures of the subclass, a dict of name -> tf.function."""
        raise NotImplementedError

    def _predict_tokens(self, packed):
        """Returns what the model says of rows, a dict of tensors."""
        raise NotImplementedError

    def ids(self, texts):
        """Returns the ids of texts, string [B] → ragged int32 [B, None]."""
        return self.tokenizer(readable(texts, self.packer.max_bytes))

    def _packed(self, text):
        """Lays out what `encode` and `explain_tokens` were given, string [B]."""
        return self._pack(self.ids(text))

    def _pack(self, first, second=None):
        return self.packer.pack(first, second)

    def _encode(self, text):
        packed = self._packed(text)
        outputs = self.stored.encode(packed)
        outputs = {name: tf.cast(value, tf.float32) for name, value in outputs.items()}
        is_real = tf.cast(packed["input_mask"], tf.float32)[:, :, None]
        sums = tf.reduce_sum(outputs["sequence_output"] * is_real, axis=1)
        mean = sums / tf.reduce_sum(is_real, axis=1)
        return {
            "pooled_output": outputs["pooled_output"],
            "mean_output": mean,
            "sequence_output": outputs["sequence_output"],
        }

    def _explain_tokens(self, text):
        packed = self._packed(text)
        pieces = tf.gather(self.tokenizer.pieces, packed["input_ids"])
        pieces = tf.where(packed["input_mask"] > 0, pieces, "")
        return {"pieces": pieces, "ids": packed["input_ids"]}

    def _token_function(self):
        names = ("input_ids", "input_mask", "segment_ids")
        specs = [tf.TensorSpec(self._ids_shape, tf.int32, name=name) for name in names]

        @tf.function(input_signature=specs, autograph=False)
        def predict_tokens(input_ids, input_mask, segment_ids):
            size = self.tokenizer.pieces.shape[0]
            is_known = (input_ids >= 0) & (input_ids < size)
            packed = {
                "input_ids": tf.where(is_known, input_ids, self._unk_id),
                "input_mask": tf.cast(input_mask > 0, tf.int32),
                "segment_ids": tf.cast(segment_ids > 0, tf.int32),
            }
            return self._predict_tokens(packed)

        return predict_tokens


def string_function(function, *names):
    """Makes a tf.function over string [B] of these names out of one over as many tensors."""
    specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    return tf.function(function, input_signature=specs, autograph=False)


class TextModel(StringModel):
    """Signatures of a pre-trained model.

    fill_mask, also serving_default, see `_fill_mask`; sentence_order, if the model has such a head:
    `first` and `second` string [B] → `in_order` float32 [B]; those of `StringModel`, of which
    predict_tokens gives `pieces` and `scores` as fill_mask does.

    Args:
        model: AlbertForPretraining, float32.
        tokenizer, max_seq_length, precision: As of `StringModel`.
    """

    def __init__(self, model, tokenizer, max_seq_length, precision="float32"):
        self._mask_id = tokenizer.mask_id
        super().__init__(model, tokenizer, max_seq_length, precision)

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
            mask. `filled_text` string [B].
        """
        read = tf.strings.split(readable(text, self.packer.max_bytes), MASK_LITERAL)
        before, after = first_values(read), read[:, 1:]
        pieces_after = self.tokenizer.continuation(after.flat_values)  # [all masks, pieces]
        masks = tf.fill([tf.shape(after.flat_values)[0], 1], self._mask_id)
        after = after.with_flat_values(tf.concat([masks, pieces_after], axis=1)).merge_dims(1, 2)
        packed = self._pack(tf.concat([self.tokenizer(before), after], axis=1))

        # What is not read stays in the filled text.
        most = self.packer.max_bytes // len(MASK_LITERAL)
        whole = readable(text, None)
        parts = tf.strings.split(whole, MASK_LITERAL, maxsplit=most)
        before, rest = first_values(parts), parts[:, 1:]
        width = tf.cast(tf.reduce_max(rest.row_lengths()), tf.int32)
        pieces, scores, visible = self._candidates(packed, width)
        words = tf.strings.regex_replace(pieces[:, :, 0], "▁", "")
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
        width = tf.maximum(tf.maximum(tf.reduce_max(counts), width), 1)  # M
        visible = tf.sequence_mask(counts, width)  # [B, M]
        positions = pad_to(positions.to_tensor(), width)
        logits = self.stored.masked_lm(packed, positions)
        scores, ids = tf.math.top_k(tf.nn.softmax(logits), k=TOP_K)  # [B, M, 10]
        pieces = tf.gather(self.tokenizer.pieces, ids)
        pieces = tf.where(visible[:, :, None], pieces, "")
        return pieces, tf.where(visible[:, :, None], scores, 0.0), visible
