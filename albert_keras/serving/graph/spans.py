"""Fine-tuned models that answer with a stretch of a context."""

import tensorflow as tf

from albert_keras.serving.graph.aligning_tokenizer import AligningTokenizer
from albert_keras.serving.graph.span_answers import SpanReader
from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.task_base import TaskModel, at_tab
from albert_keras.serving.graph.text_packing import pieces_from


class SpanModel(TaskModel):
    """Answers that are stretches of a context.

    question_answering  `question`, `context` string [B] → see `SpanReader.answers`
    serving_default     `text` string [B], question and context parted by the first tab

    `encode` and `explain_tokens` take the same text, and show the first window.
    """

    _tokenizer_class = AligningTokenizer

    def _functions(self):
        self._reader = SpanReader(
            self.tokenizer, self.stored, self.packer, self._config, self._null_threshold
        )
        ask = self._reader.answers
        return {
            "serving_default": string_function(lambda text: ask(*self._parted(text)), "text"),
            "question_answering": string_function(ask, "question", "context"),
        }

    def _parted(self, text):
        return at_tab(text, self.packer.max_bytes)

    def _packed(self, text):
        question, context = (self.ids(one) for one in self._parted(text))
        question = question[:, : self._config.max_query_length]
        room = self.packer.max_seq_length - 3 - question.row_lengths()
        lengths = tf.minimum(context.row_lengths(), room)
        return self.packer.lay_out(question, pieces_from(context, 0, lengths))

    def _predict_tokens(self, packed):
        return self._reader.outputs(packed)
