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
from albert_keras.models.answers import choice_answers, with_dropped
from albert_keras.models.labels import class_targets
from albert_keras.models.preprocessor import Packed, TextPreprocessor
from albert_keras.models.task_heads import LinearHead
from albert_keras.models.text_classifiers import accuracy, class_crossentropy
from albert_keras.models.text_model import AlbertForTexts, Tensors, sequences_of_rows
from data_pipeline.errors import InputError
from data_pipeline.limits import BYTES_PER_POSITION

#: Blanks in a question: the low line, and those that clean-up turns into one.
_BLANK = "_"
_OTHER_BLANKS = "[\ufe33\ufe34\ufe4d-\ufe4f\uff3f]"


#: Probabilities that differ by no more are equal, and the first option is chosen: the last digits
#: depend on what else is computed at the same time.
EQUALLY_LIKELY = 1e-5


@keras.saving.register_keras_serializable("albert_keras")
class AlbertMultipleChoicePreprocessor(TextPreprocessor):
    """Packs a context with each option of a question, for `AlbertForMultipleChoice`.

    The option replaces the blanks `_` of the question, or follows it. The last `max_qa_length`
    tokens of question and option are read, and the first ones of the context.

    Args:
        max_qa_length: int or None. Tokens of a question and an option; None is 128, or a quarter of
            `sequence_length` if that is less.
        **kwargs: `tokenizer`, `sequence_length`, `padding` and others; see `AlbertPreprocessor`.

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
        padding: str = "sequence_length",
        max_qa_length: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(tokenizer, sequence_length, padding, **kwargs)
        self.max_qa_length = max_qa_length or min(128, sequence_length // 4)
        num_special = self.tokenizer.num_special
        if not 1 <= self.max_qa_length < sequence_length - num_special:
            raise InputError(
                f"`max_qa_length` must be at least 1 and less than `sequence_length` - "
                f"{num_special}. Received: max_qa_length={self.max_qa_length}, "
                f"sequence_length={sequence_length}."
            )

    def packed(
        self, columns: Mapping[str, Any], is_fixed: bool, targets: Mapping[str, Any] | None = None
    ) -> Packed:
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
        of_question = tf.maximum(tf.reduce_max(dropped, axis=1), 0)
        return Packed(packed, {"options": options, "dropped_tokens": of_question})

    def _stripped(self, text):
        """Returns the end of texts, up to the byte limit, without surrounding white space."""
        text = readable(text, self._packers[True].max_bytes, from_end=True)
        return tf.strings.regex_replace(text, f"^{WHITE_SPACE}+|{WHITE_SPACE}+$", "")

    def _filled(self, question, option):
        """Returns questions with an option in their blanks, or followed by it if they have none.

        It is at least the end that is read. Of many blanks, only the last ones are filled, until
        the text exceeds the byte limit.
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
    signature = "multiple_choice", {name: name for name in ("context", "question", "options")}
    ids_shape = (None, None, None)
    usual_length = 512
    usual_loss: Any = staticmethod(class_crossentropy)
    usual_metrics = [accuracy]
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

    def task_settings(self) -> dict[str, Any] | None:
        return {"name": "race", "max_qa_length": self.preprocessor.max_qa_length}

    def read_out(self, outputs: Tensors, origin: Any) -> dict[str, tf.Tensor]:
        """Returns the answers.

        They are `choice` int32 [B], the number of the option from 0; `option` string [B], truncated
        at its end; `probabilities` float32 [B, C]; and `dropped_tokens` int32 [B], of the option
        with most of them.
        """
        probabilities = self.predictions(outputs)
        best = tf.reduce_max(probabilities, axis=1, keepdims=True)
        choice = tf.argmax(probabilities >= best - EQUALLY_LIKELY, axis=1, output_type=tf.int32)
        chosen = tf.gather(origin["options"], choice, batch_dims=1)
        return {
            "choice": choice,
            "option": readable(chosen, self.preprocessor.max_bytes),
            "probabilities": probabilities,
            "dropped_tokens": origin["dropped_tokens"],
        }

    @classmethod
    def answers_of(cls, arrays: Mapping[str, np.ndarray], columns: Mapping[str, list]) -> list[Any]:
        values, choices = arrays["probabilities"].tolist(), arrays["choice"].tolist()
        answers = choice_answers(columns["id"], columns["options"], values, choices)
        return with_dropped(answers, arrays)

    @classmethod
    def targets_of(
        cls, labels: Any, columns: Mapping[str, Any], names: Any = (), are_shares: bool = True
    ) -> np.ndarray:
        count = max(map(len, columns["options"]), default=0)
        return class_targets(labels, list(map(str, range(count))), are_shares=are_shares)
