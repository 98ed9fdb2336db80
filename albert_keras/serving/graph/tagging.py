"""Fine-tuned models that tag words."""

import tensorflow as tf

from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.task_base import TaskModel
from albert_keras.serving.graph.text_packing import (
    WHITE_SPACE,
    pieces_from,
    ragged_cumsum,
    readable,
)


class TaggingModel(TaskModel):
    """Tags of words.

    tags, also serving_default  `text` string [B], words parted by white space → `words`, `tags`
                                string and `probability` float32 [B, W]; "" and 0 fill up

    A text is one row: words that do not fit into it have the tag "" and the probability 0, and
    those beyond `TextPacker.max_bytes` are not among `words`.
    """

    def _functions(self):
        tags = string_function(self._tags, "text")
        return {"serving_default": tags, "tags": tags}

    def _packed(self, text):
        return self._sentences(text)[0]

    def _sentences(self, text):
        """Returns rows, words (ragged string [B, None]), and the place of each, 0 for none."""
        text = tf.strings.regex_replace(
            readable(text, self.packer.max_bytes), f"{WHITE_SPACE}+", " "
        )
        words = tf.strings.split(text)
        pieces = self.tokenizer(words.flat_values)  # [all words, None]
        unknown = tf.fill([pieces.nrows(), 1], self._unk_id)
        is_nothing = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.RaggedTensor.from_tensor(unknown, lengths=is_nothing)
        room = self.packer.max_seq_length - 2
        pieces = tf.concat([pieces, unknown], axis=1)[:, :room]
        lengths = words.with_flat_values(pieces.row_lengths())
        ends = ragged_cumsum(lengths)
        fits = ends <= room
        used = tf.reduce_sum(tf.where(fits, lengths, tf.zeros_like(lengths)), axis=1)
        rows = words.with_flat_values(pieces).merge_dims(1, 2)
        packed = self.packer.lay_out(pieces_from(rows, 0, used))
        places = tf.where(fits, 1 + ends - lengths, tf.zeros_like(lengths))
        return packed, words, places.to_tensor(0)

    def _tags(self, text):
        packed, words, places = self._sentences(text)
        logits = self.stored.outputs(packed)["logits"]
        tags, probability = self._likeliest(tf.gather(logits, places, batch_dims=1))
        return {
            "words": words.to_tensor(""),
            "tags": tf.where(places > 0, tags, ""),
            "probability": tf.where(places > 0, probability, 0.0),
        }
