"""Fine-tuned models that take plain strings: their rows and answers, traced.

The rows are those of the preprocessor of the model, and the answers those of its `read_out`, so
that a server answers as `AlbertForTexts.answer` does.
"""

from collections.abc import Callable

import tensorflow as tf

from albert_keras.layers.text_packing import first_values
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.serving.graph.string_model import StringModel, string_function


class TaskModel(StringModel):
    """Signatures of a model of texts.

    serving_default  `text` string [B]; two texts are separated by the first tab. Of a question with
        options it is the next one.
    The `signature` of the model, such as `text_pair`: an input string [B] for each text, and
        `options` string [B, C].
    predict_tokens  `input_ids`, `input_mask`, `segment_ids` int32 [B, S], or as `ids_shape` of the
        model → what `outputs_of` of the model returns

    All but the last return what `read_out` of the model does.

    Args:
        model: AlbertForTexts, float32, with a preprocessor.
        precision: See `StringModel`.
    """

    def __init__(self, model: AlbertForTexts, precision: str = "float32"):
        vars(self)["model"] = model  # not tracked, see `StringModel`
        super().__init__(model, model.preprocessor, precision)

    def _functions(self):
        name, inputs = self.model.signature[0], self.model.signature_inputs

        def answer(*texts):
            return self._answer(dict(zip(inputs.values(), texts, strict=True)))

        of_all = string_function(answer, *inputs)
        functions = {"serving_default": of_all, "predict_tokens": self.token_function()}
        if "options" not in inputs:
            functions["serving_default"] = string_function(self._answer_text, "text")
        if inputs == self.model.signature[1]:  # not those of a model that also takes pairs
            functions[name] = of_all
        return functions

    def token_function(self, shape: tuple[int | None, ...] | None = None) -> Callable:
        """Returns `predict_tokens` for inputs of a shape, by default that of the model."""
        names = ("input_ids", "input_mask", "segment_ids")
        shape = self.model.ids_shape if shape is None else shape
        specs = [tf.TensorSpec(shape, tf.int32, name=name) for name in names]

        @tf.function(input_signature=specs, autograph=False)
        def predict_tokens(input_ids, input_mask, segment_ids):
            size = self.tokenizer.pieces.shape[0]
            is_known = (input_ids >= 0) & (input_ids < size)
            packed = {
                "input_ids": tf.where(is_known, input_ids, self.rows.tokenizer.unk_id),
                "input_mask": tf.cast(input_mask > 0, tf.int32),
                "segment_ids": tf.cast(segment_ids > 0, tf.int32),
            }
            return self.outputs(packed)

        return predict_tokens

    def _columns_of(self, text):
        """Returns the texts of examples by name; two are separated by the first tab of `text`."""
        names = [*self.model.signature_inputs.values()]
        if len(names) == 1:
            return {names[0]: text}
        parts = tf.strings.split(text, "\t", maxsplit=1)
        return dict(zip(names, (first_values(parts), first_values(parts[:, 1:])), strict=True))

    def _answer_text(self, text):
        return self._answer(self._columns_of(text))

    def _answer(self, columns):
        outputs, origin = self.model.outputs_of_texts(columns, outputs_of=self.outputs)
        return self.model.read_out(outputs, origin)
