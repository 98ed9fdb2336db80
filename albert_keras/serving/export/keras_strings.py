"""Any functional Keras model over strings as an export: one signature, `serving_default`."""

import re
from typing import Any

import keras
import tensorflow as tf

from albert_keras.models.preprocessor import AlbertPreprocessor
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Names of inputs that have none, in Keras 2.15 and in Keras 3.
_NAMED_BY_KERAS = re.compile(r"input_\d+|keras_tensor(_\d+)?")


class FunctionalModel(tf.Module):
    """A functional model whose inputs are strings, as `StringModel` is for models of runs.

    Args:
        model: keras.Model. Each input is string [B] or [B, n]; its name is the name of the input of
            the signature, "text" for the only input if Keras named it.
            Outputs are tensors, whose names are those of the output layers, or a dict.

    Raises:
        InputError: If an input is not a string, or the model is not a functional one.
    """

    #: Lengths of the warm-up requests, in words.
    buckets = (16, 32, 64, 128)
    step = None

    def __init__(self, model: keras.Model):
        super().__init__(name="functional_model")
        inputs = getattr(model, "inputs", None) or []
        wrong = [one.name for one in inputs if one.dtype != tf.string or len(one.shape) > 2]
        if not inputs or wrong:
            raise InputError(
                "A Keras model to export must be a functional model whose inputs are strings, "
                "[B] or [B, n], or a model of this package with its tokenizer. Received: "
                f"{type(model).__name__} with the inputs {', '.join(wrong) or 'none'}. "
                "`model.export` of Keras takes inputs of any type."
            )
        self.model = model
        is_unnamed = len(inputs) == 1 and _NAMED_BY_KERAS.fullmatch(inputs[0].name)
        self._names = ("text",) if is_unnamed else tuple(one.name for one in inputs)
        specs = [
            tf.TensorSpec(one.shape, tf.string, name)
            for one, name in zip(inputs, self._names, strict=True)
        ]

        @tf.function(input_signature=specs, autograph=False)
        def serving_default(*texts):
            return self.answers(dict(zip(self._names, texts, strict=True)))

        self.functions = {"serving_default": serving_default}
        self.token_functions: dict[str, Any] = {}

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer of an `AlbertPreprocessor` in the model, or None."""
        found = (one for one in self.model._flatten_layers() if isinstance(one, AlbertPreprocessor))
        return next((one.tokenizer for one in found), None)

    def answers(self, inputs: dict[str, Any]) -> dict[str, tf.Tensor]:
        """Returns the outputs of the model by name."""
        given = tf.nest.pack_sequence_as(self.model.input, [inputs[name] for name in self._names])
        outputs = self.model(given, training=False)
        if isinstance(outputs, dict):
            return outputs
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        return dict(zip(self.model.output_names, outputs, strict=True))

    def describe(self) -> dict[str, Any]:
        """Returns what readers of an export must know about the model, plain JSON."""
        return {
            "kind": "keras",
            "task": None,
            "tuned": {},
            "scores": {},
            "baselines": {},
            "run": {},
            "num_parameters": self.model.count_params(),
        }
