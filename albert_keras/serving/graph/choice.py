"""Fine-tuned models that choose one of several options."""

import tensorflow as tf

from albert_keras.serving.graph.task_base import TaskModel
from albert_keras.serving.graph.text_packing import (
    BYTES_PER_PLACE,
    WHITE_SPACE,
    first_values,
    pieces_from,
    readable,
)
from albert_keras.tasks.race.choice_task import EQUALLY_LIKELY

# What is a blank of a question, as in `tasks/choice_features.py`.
_BLANK = "_"
_OTHER_BLANKS = "[\ufe33\ufe34\ufe4d-\ufe4f\uff3f]"
_SPACE = f"{WHITE_SPACE}+"


class ChoiceModel(TaskModel):
    """Options to choose from.

    multiple_choice, also serving_default  `context`, `question` string [B], `options` string
        [B, C] → `choice` int32 [B], its number from 0; `option` string [B]; `probabilities`
        float32 [B, C]

    Of question and options the last bytes are read, of the context the first ones; `option` is the
    beginning of one that is longer than that.
    """

    _ids_shape = (None, None, None)

    def _functions(self):
        specs = [tf.TensorSpec([None], tf.string, name=name) for name in ("context", "question")]
        specs.append(tf.TensorSpec([None, None], tf.string, name="options"))
        choose = tf.function(self._choose, input_signature=specs, autograph=False)
        return {"serving_default": choose, "multiple_choice": choose}

    @property
    def _max_qa_length(self):
        return self._config.max_qa_length or min(128, self.packer.max_seq_length // 4)

    def _choose(self, context, question, options):
        shape = tf.shape(options)
        rows = tf.repeat(tf.range(shape[0], dtype=tf.int64), shape[1])
        option = tf.reshape(options, [-1])
        question, option = self._cleaned(question), self._cleaned(option)
        asked = self._filled(tf.gather(question, rows), option)
        asked = readable(asked, BYTES_PER_PLACE * self._max_qa_length, from_end=True)
        asked = self.tokenizer(asked)
        surplus = tf.maximum(asked.row_lengths() - self._max_qa_length, 0)
        second = pieces_from(asked, surplus, asked.row_lengths() - surplus)
        first = self.ids(context)
        room = self.packer.max_seq_length - 3 - second.row_lengths()
        lengths = tf.minimum(tf.gather(first.row_lengths(), rows), room)
        packed = self.packer.lay_out(pieces_from(first, 0, lengths, rows), second, drops_empty=True)
        packed = {
            name: tf.reshape(ids, [shape[0], shape[1], tf.shape(ids)[1]])
            for name, ids in packed.items()
        }
        probabilities = tf.nn.softmax(self.stored.outputs(packed)["logits"])
        # Of equals the first, whatever their last digits are beside other rows.
        best = tf.reduce_max(probabilities, axis=1, keepdims=True)
        choice = tf.argmax(probabilities >= best - EQUALLY_LIKELY, axis=1, output_type=tf.int32)
        chosen = readable(tf.gather(options, choice, batch_dims=1), self.packer.max_bytes)
        return {"choice": choice, "option": chosen, "probabilities": probabilities}

    def _cleaned(self, text):
        """Returns the end of texts, as much as is read, without white space around it."""
        text = readable(text, self.packer.max_bytes, from_end=True)
        return tf.strings.regex_replace(text, f"^{_SPACE}|{_SPACE}$", "")

    def _filled(self, question, option):
        """Does as `choice_text` of `tasks/choice_features.py`; no more than the end of long ones.

        Only as many of the last blanks are filled as it takes to exceed what is read of a text.
        """
        most = self.packer.max_bytes
        question = tf.strings.regex_replace(question, _OTHER_BLANKS, _BLANK)
        parts = tf.strings.split(question, _BLANK)
        lengths = tf.cast(tf.maximum(tf.strings.length(option), 1), tf.int64)
        left = tf.minimum(parts.row_lengths(), 2 + most // lengths)
        parts = pieces_from(parts, parts.row_lengths() - left, left)
        rest = parts[:, 1:]
        repeated = tf.gather(option, rest.value_rowids())
        rest = rest.with_flat_values(tf.strings.join([repeated, rest.flat_values]))
        filled = tf.strings.join([first_values(parts), tf.strings.reduce_join(rest, axis=1)])
        unfilled = tf.strings.join([question, " ", option])
        return tf.where(rest.row_lengths() > 0, filled, unfilled)
