"""Fine-tuned models that tag the words of plain strings, in windows that overlap."""

import tensorflow as tf

from albert_keras.models.tagging import AlbertTaggingPreprocessor
from albert_keras.models.windows import compute_in_parts
from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.string_tasks import TaskModel


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

    preprocessor_class = AlbertTaggingPreprocessor

    @property
    def max_bytes(self):
        return self.rows.max_bytes

    def _functions(self):
        tags = string_function(self._tags, "text")
        return {"serving_default": tags, "tags": tags}

    def _sequences(self, text):
        _, word_ids = self.rows.words({"text": text})
        ids = word_ids.merge_dims(1, 2)
        packed = self.packer.pack(ids)
        return packed, self.packer.num_dropped(packed, self.num_tokens(text, ids))

    def _tags(self, text):
        words, word_ids = self.rows.words({"text": text})
        packed, places, _ = self.rows.windows(word_ids, self.packer.is_fixed)
        specs = [tf.TensorSpec([None, None], dtype) for dtype in (tf.int64, tf.float32)]
        numbers, probability = (
            tf.gather_nd(values, places)
            for values in compute_in_parts(self._best_tags, specs, packed)
        )
        tags = words.with_flat_values(tf.gather(self._labels, numbers))
        return {
            "words": words.to_tensor(""),
            "tags": tags.to_tensor(""),
            "probability": words.with_flat_values(probability).to_tensor(0.0),
            "dropped_words": self.rows.num_dropped_words(text),
        }

    def _best_tags(self, packed):
        """Returns the numbers and probabilities of the best tags, int64 and float32 [W, bucket]."""
        logits = self.outputs(packed)["logits"]
        return tf.argmax(logits, axis=-1), tf.reduce_max(tf.nn.softmax(logits), axis=-1)
