"""Fine-tuned models that take plain strings: their rows and answers, traced.

The rows are those of the preprocessor of the model, and the answers those of its `read_out`, so
that a server answers as `AlbertForTexts.answer` does.
"""

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
    predict_tokens  returns what `outputs_of` of the model does

    All but the last return what `read_out` of the model does.

    Args:
        model: AlbertForTexts, float32, with a preprocessor.
        precision: See `StringModel`.
    """

    def __init__(self, model: AlbertForTexts, precision: str = "float32"):
        vars(self)["model"] = model  # not tracked, see `StringModel`
        self.ids_shape = model.ids_shape
        super().__init__(model, model.preprocessor, precision)

    def _functions(self):
        name, inputs = self.model.signature[0], self.model.signature_inputs

        def answer(*texts):
            return self._answer(dict(zip(inputs.values(), texts, strict=True)))

        of_all = string_function(answer, *inputs)
        if "options" in inputs:
            return {"serving_default": of_all, name: of_all}
        functions = {"serving_default": string_function(self._answer_text, "text")}
        if inputs == self.model.signature[1]:  # not those of a model that also takes pairs
            functions[name] = of_all
        return functions

    def _predict_tokens(self, packed):
        return self.outputs(packed)

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
