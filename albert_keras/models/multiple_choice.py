"""A model that chooses one of several options.

Source: `race_utils.py` in google-research/albert.
"""

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.text_packing import (
    WHITE_SPACE,
    first_values,
    num_tokens_of,
    readable,
    row_slices,
)
from albert_keras.models.labels import class_targets
from albert_keras.models.preprocessor import TextPreprocessor
from albert_keras.models.task_heads import LinearHead
from albert_keras.models.text_classifiers import accuracy, class_crossentropy
from albert_keras.models.text_model import (
    AlbertForTexts,
    sequences_of_rows,
)
from data_pipeline.limits import BYTES_PER_POSITION

#: Blanks in a question, as in `choice_text` of the task.
_BLANK = "_"
_OTHER_BLANKS = "[\ufe33\ufe34\ufe4d-\ufe4f\uff3f]"


@keras.saving.register_keras_serializable("albert_keras")
class AlbertMultipleChoicePreprocessor(TextPreprocessor):
    """Packs a context with each option of a question, for `AlbertForMultipleChoice`.

    The option replaces the blanks `_` of the question, or follows it. The last `max_qa_length`
    tokens of question and option are read, and the first ones of the context.

    Args:
        max_qa_length: int or None. Tokens of a question and an option; None is 128, or a quarter of
            `sequence_length` if that is less.
        **kwargs: `tokenizer`, `sequence_length`, `pads_to` and others; see `AlbertPreprocessor`.

    Call arguments:
        inputs: A tuple of "context" and "question", string [B], and "options", string [B, C]; or a
            dict of these.

    Returns:
        dict of int32 [B, C, S]: "input_ids", "input_mask", "segment_ids".
    """

    fields = ("context", "question", "options")

    def __init__(
        self,
        tokenizer: Any,
        sequence_length: int = 512,
        pads_to: str = "sequence_length",
        max_qa_length: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length, pads_to, **kwargs)
        self.max_qa_length = max_qa_length or min(128, sequence_length // 4)

    def rows(self, columns: Mapping[str, Any], is_fixed: bool) -> dict[str, tf.Tensor]:
        return self.sequences(columns, is_fixed)[0]

    def sequences(
        self, columns: Mapping[str, Any], is_fixed: bool
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Returns the rows, and of each option the tokens that are not in it, int32 [B, C]."""
        packer = self._packers[is_fixed]
        context, question, options = (columns[name] for name in self.fields)
        if isinstance(options, tf.RaggedTensor):
            options = options.to_tensor()
        shape = tf.shape(options)
        rows = tf.repeat(tf.range(shape[0], dtype=tf.int64), shape[1])
        option = self._stripped(tf.reshape(options, [-1]))
        filled = self._filled(tf.gather(self._stripped(question), rows), option)
        max_qa_bytes = BYTES_PER_POSITION * self.max_qa_length
        second = self.graph_tokenizer(readable(filled, max_qa_bytes, from_end=True))
        num_tokens = num_tokens_of(filled, second, max_qa_bytes)
        surplus = tf.maximum(second.row_lengths() - self.max_qa_length, 0)
        second = row_slices(second, surplus, second.row_lengths() - surplus)
        first = self.ids(context)
        num_first = num_tokens_of(context, first, packer.max_bytes)
        num_tokens += tf.gather(num_first, rows)
        room = packer.max_seq_length - packer.num_special - second.row_lengths()
        lengths = tf.minimum(tf.gather(first.row_lengths(), rows), room)
        packed = packer.join(row_slices(first, 0, lengths, rows), second, drops_empty=True)
        dropped = tf.reshape(packer.num_dropped(packed, num_tokens), shape)
        packed = {
            name: tf.reshape(ids, [shape[0], shape[1], tf.shape(ids)[1]])
            for name, ids in packed.items()
        }
        return packed, dropped

    def _stripped(self, text):
        """Returns the end of texts, up to the byte limit, without surrounding white space."""
        text = readable(text, self._packers[True].max_bytes, from_end=True)
        return tf.strings.regex_replace(text, f"^{WHITE_SPACE}+|{WHITE_SPACE}+$", "")

    def _filled(self, question, option):
        """Joins questions and options as `choice_text` of the task, at least the end that is read.

        Of many blanks, only the last ones are filled, until the text exceeds the byte limit.
        """
        max_bytes = self._packers[True].max_bytes
        question = tf.strings.regex_replace(question, _OTHER_BLANKS, _BLANK)
        parts = tf.strings.split(question, _BLANK)
        lengths = tf.cast(tf.maximum(tf.strings.length(option), 1), tf.int64)
        left = tf.minimum(parts.row_lengths(), 2 + max_bytes // lengths)
        parts = row_slices(parts, parts.row_lengths() - left, left)
        rest = parts[:, 1:]
        repeated = tf.gather(option, rest.value_rowids())
        rest = rest.with_flat_values(tf.strings.join([repeated, rest.flat_values]))
        filled = tf.strings.join([first_values(parts), tf.strings.reduce_join(rest, axis=1)])
        unfilled = tf.strings.join([question, " ", option])
        return tf.where(rest.row_lengths() > 0, filled, unfilled)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"max_qa_length": self.max_qa_length}


@keras.saving.register_keras_serializable("albert_keras")
class AlbertForMultipleChoice(AlbertForTexts):
    """Chooses one of several texts.

    Args:
        config: AlbertConfig.
        **kwargs: As in `AlbertForTexts`.

    Call arguments:
        inputs: A tuple of contexts and questions, string [B], and options, string [B, C]; a dict of
            these; or the features of `AlbertMultipleChoicePreprocessor`, int [B, C, S].

    Returns:
        float32 [B, C]. Probabilities of the options. `outputs_of` returns their "logits".

    Example:
        model = AlbertForMultipleChoice.from_preset("albert-mini-en", sequence_length=64)
        passages, questions = ["The ferry left at noon."], ["When did it leave?"]
        model.fit((passages, questions, [["at noon", "at night"]]), [0])
        model.answer((passages, questions, [["at noon", "at night"]]))[0].option
    """

    preprocessor_class = AlbertMultipleChoicePreprocessor
    usual_length = 512
    usual_loss: Any = staticmethod(class_crossentropy)
    usual_metrics = (accuracy,)
    _reads_pooler = True
    _sample_shape = (1, 2, 4)

    def __init__(self, config: AlbertConfig, **kwargs: Any):
        super().__init__(config, **kwargs)
        self.head = LinearHead(config, 1, self.head_dropout, **self._of_head)

    def _outputs(self, inputs, training, dropout_seed):
        texts, dropout_seed, options = sequences_of_rows(inputs, dropout_seed)
        pooled = self._pooled(texts, training, dropout_seed)  # [B * options, H]
        logits = self.head(pooled, dropout_seed, training=training)
        return {"logits": tf.reshape(logits, (-1, options))}

    def sample_inputs(self) -> dict[str, Any]:
        return super().sample_inputs() | {"options": tf.constant([["a text", "another"]])}

    def targets(self, labels: Any, columns: Mapping[str, Any]) -> np.ndarray:
        count = max(map(len, columns["options"]), default=0)
        names = list(map(str, range(count)))
        return class_targets(labels, names, are_shares=self.has_usual_loss)
