"""Fine-tuned models that tag the words of plain strings, in windows that overlap."""

import tensorflow as tf

from albert_keras.layers.text_packing import WHITE_SPACE, readable, row_slices, unread
from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.serving.graph.windows import compute_in_parts, lay_out_windows, max_context
from albert_keras.tasks.tagging.features import window_stride
from albert_keras.tasks.tagging.words import GIVEN_WORDS, word_steps
from data_pipeline.limits import LONG_TEXT_FACTOR


class TaggingModel(TaskModel):
    """Tags of words.

    tags, also serving_default  `text` string [B], split into words as by `split_words` → `words`,
                                `tags` string and `probability` float32 [B, W], padded with "" and
                                0; `dropped_words` int32 [B]

    A long text takes several windows that overlap; a word has the tag of the window that contains
    most context around its first token. `LONG_TEXT_FACTOR` times as many bytes are read as of other
    texts. `dropped_words` counts the words beyond them, which are missing in `words`; only
    the part that is read of a word at this limit is tagged.

    `encode`, `explain_tokens` and `attention` return the first window.
    """

    @property
    def max_bytes(self):
        return LONG_TEXT_FACTOR * self.packer.max_bytes

    def _functions(self):
        tags = string_function(self._tags, "text")
        return {"serving_default": tags, "tags": tags}

    def _sequences(self, text):
        _, word_ids = self._words(readable(text, self.max_bytes))
        ids = word_ids.merge_dims(1, 2)
        packed = self.packer.pack(ids)
        return packed, self.packer.num_dropped(packed, self.num_tokens(text, ids))

    def _words(self, text):
        """Returns the words of texts, ragged string [B, None], and their ids [B, None, None]."""
        words = self._split(text, text)
        ids = self.tokenizer(words.flat_values)  # [all words, None]
        unknown = tf.fill([ids.nrows(), 1], self._unk_id)
        is_empty = tf.cast(ids.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_tensor(unknown, lengths=is_empty)
        return words, words.with_flat_values(tf.concat([ids, unknown], axis=1))

    def _tags(self, text):
        words, word_ids = self._words(readable(text, self.max_bytes))
        ids = word_ids.merge_dims(1, 2)
        room = self.packer.max_seq_length - 2
        rows, offsets, lengths = lay_out_windows(ids.row_lengths(), room, window_stride(room))
        packed = self.packer.join(row_slices(ids, offsets, lengths, rows))
        specs = [tf.TensorSpec([None, None], dtype) for dtype in (tf.int64, tf.float32)]
        numbers, probability = compute_in_parts(self._best_tags, specs, packed)
        # Tokens are in the order of the texts, as windows are, and each is best in one window.
        positions = tf.range(tf.shape(numbers, tf.int64)[1]) - tf.ones_like(rows)[:, None]
        firsts = tf.gather(ids.row_starts(), rows) + offsets
        is_best = max_context(positions, lengths, firsts)
        first_tokens = tf.cumsum(word_ids.values.row_lengths(), exclusive=True)
        number, probability = (
            tf.gather(tf.boolean_mask(values, is_best), first_tokens)
            for values in (numbers, probability)
        )
        tags = words.with_flat_values(tf.gather(self._labels, number))
        return {
            "words": words.to_tensor(""),
            "tags": tags.to_tensor(""),
            "probability": words.with_flat_values(probability).to_tensor(0.0),
            "dropped_words": self._num_dropped_words(text),
        }

    def _best_tags(self, packed):
        """Returns the numbers and probabilities of the best tags, int64 and float32 [W, bucket]."""
        logits = self.outputs(packed)["logits"]
        return tf.argmax(logits, axis=-1), tf.reduce_max(tf.nn.softmax(logits), axis=-1)

    def _num_dropped_words(self, text):
        """Counts the words after the part of texts that is read, int32 [B]."""
        read, rest = readable(text, self.max_bytes), unread(text, self.max_bytes)
        stripped = tf.strings.regex_replace(read, f"{WHITE_SPACE}$", "")
        # The rest of a word that was read in part is not a word.
        is_inside = (tf.strings.length(stripped) == tf.strings.length(read)) & (read != "")
        last = tf.strings.regex_replace(read, "(?s)^.*(.)$", r"\1")
        rest = self._split(tf.strings.join([tf.where(is_inside, last, ""), rest]), text)
        return tf.cast(rest.row_lengths(), tf.int32) - tf.cast(is_inside, tf.int32)

    def _split(self, part, text):
        """Splits parts of texts into words, as `split_words` the whole: ragged string [B, None]."""
        is_given = tf.strings.substr(text, 0, len(GIVEN_WORDS)) == GIVEN_WORDS
        apart = part
        for expression, replacement in word_steps(self._config.word_rule):
            apart = tf.strings.regex_replace(apart, expression, replacement)
        part = tf.where(is_given, part, apart)
        return tf.strings.split(tf.strings.regex_replace(part, f"{WHITE_SPACE}+", " "))
