"""Fine-tuned models that answer questions about a context."""

import tensorflow as tf

from albert_keras.layers.text_packing import row_slices
from albert_keras.models.span_search import SpanSearch, answer_mask
from albert_keras.models.spans import AlbertSpansPreprocessor
from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.string_tasks import TaskModel


class SpanModel(TaskModel):
    """Answers that are spans of a context.

    question_answering  `question`, `context` string [B] → see `SpanSearch.answers`
    serving_default     `text` string [B], question and context separated by the first tab

    `encode` and `explain_tokens` take the same text, and return the first window. Questions with
    the null score `null_threshold` or more are left unanswered; squad1 always answers.
    """

    preprocessor_class = AlbertSpansPreprocessor

    def _functions(self):
        self._search = SpanSearch(
            self.outputs,
            self._null_threshold is not None,
            self._config.n_best,
            self._config.max_answer_length,
        )
        return {
            "serving_default": string_function(
                lambda text: self._answers(*self._split_at_tab(text)), "text"
            ),
            "question_answering": string_function(self._answers, "question", "context"),
        }

    def _answers(self, question, context):  # inputs have the names of their signature
        windows = self.rows.windows(context, question, self.packer.is_fixed)
        return self._search.answers(windows, self._null_threshold or 0.0)

    def _sequences(self, text):
        texts = self._split_at_tab(text)
        question, context = ids = [self.ids(part) for part in texts]
        num_tokens = sum(self.num_tokens(*part) for part in zip(texts, ids, strict=True))
        question = question[:, : self._config.max_query_length]
        room = self.packer.max_seq_length - self.packer.num_special - question.row_lengths()
        lengths = tf.minimum(context.row_lengths(), room)
        packed = self.packer.join(question, row_slices(context, 0, lengths))
        return packed, self.packer.num_dropped(packed, num_tokens)

    def _predict_tokens(self, packed):
        """Returns the outputs of the model; answers must be in the second segment or at [CLS]."""
        return self.outputs(packed | {"p_mask": answer_mask(packed)})
