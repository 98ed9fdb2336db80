"""Fine-tuned models that classify or score texts and pairs."""

import tensorflow as tf

from albert_keras.serving.graph.example_texts import texts_of_examples
from albert_keras.serving.graph.string_model import string_function
from albert_keras.serving.graph.task_base import TaskModel, at_tab


class TextTaskModel(TaskModel):
    """Texts, or pairs of them.

    serving_default  `text` string [B], the two texts of a pair parted by the first tab
    text_pair        of pairs: `first`, `second` string [B]
    classify, or regress for numbers  `inputs` string [B], serialized tf.Examples with the features
        `text` and, of pairs, `pair` → `classes` string and `scores` float32 [B, C], or `outputs`
        float32 [B]; what is missing is ""
    """

    #: Name of the signature over tf.Examples.
    _example_name = None

    def _functions(self):
        functions = {
            "serving_default": string_function(self._answer_text, "text"),
            self._example_name: string_function(self._answer_examples, "inputs"),
        }
        if self._takes_pair:
            functions["text_pair"] = string_function(self._answer_pair, "first", "second")
        return functions

    def _packed(self, text):
        if self._takes_pair:
            return self._packed_pair(*at_tab(text, self.packer.max_bytes))
        return super()._packed(text)

    def _packed_pair(self, first, second):
        return self.packer.pack(self.ids(first), self.ids(second), drops_empty=True)

    def _answer_text(self, text):
        return self._answer(self._packed(text))

    def _answer_pair(self, first, second):
        return self._answer(self._packed_pair(first, second))

    def _answer_examples(self, inputs):
        names = ("text", "pair") if self._takes_pair else ("text",)
        texts = [texts_of_examples(inputs, name, self.packer.max_bytes) for name in names]
        pack = self._packed_pair if self._takes_pair else super()._packed
        return self._as_protocol(self._answer(pack(*texts)))


class ClassificationModel(TextTaskModel):
    """Classes: `label` string and `probability` float32 [B], of the likeliest; `labels` string and
    `probabilities` float32 [B, C], of all."""

    _example_name = "classify"

    def _answer(self, packed):
        logits = self.stored.outputs(packed)["logits"]
        label, probability = self._likeliest(logits)
        labels = tf.repeat(self._labels[None], tf.shape(logits)[0], axis=0)
        return {
            "label": label,
            "probability": probability,
            "labels": labels,
            "probabilities": tf.nn.softmax(logits),
        }

    def _as_protocol(self, answer):
        return {"classes": answer["labels"], "scores": answer["probabilities"]}


class RegressionModel(TextTaskModel):
    """Numbers: `score` float32 [B]."""

    _example_name = "regress"

    def _answer(self, packed):
        return {"score": self.stored.outputs(packed)["logits"][:, 0]}

    def _as_protocol(self, answer):
        return {"outputs": answer["score"]}
