"""Traces a model into a SavedModel with the interface of TensorFlow Hub's text encoders."""

import tempfile
from pathlib import Path

import tensorflow as tf

from albert_keras.interop.model_weights import HEADS, ModelWeights
from albert_keras.layers.kernels import inference
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.heads import MaskedLMHead

_INPUTS = {
    "input_word_ids": "input_ids",
    "input_mask": "input_mask",
    "input_type_ids": "segment_ids",
}
_CONFIG = "albert_config.json"


def write_module(weights: ModelWeights, folder: Path):
    """Writes complete weights into an empty folder; see `hub_module.write`.

    Source:
        https://www.tensorflow.org/hub/reusable_saved_models and
        https://www.tensorflow.org/hub/common_saved_model_apis/text.
    """
    encoder = AlbertEncoder(_without_random_weights(weights.config), dtype="float32")
    _assign(encoder.weights, weights.tensors)
    module = tf.train.Checkpoint()  # tracks attributes only; a Keras model would store its code
    _set_variables(module, encoder.weights)
    module.__call__ = _traced(lambda inputs, training: _encode(encoder, inputs, training)[1])
    if "masked_lm" in weights.heads:
        module.mlm = _masked_lm(encoder, weights)
    others = [
        name for name in weights.tensors if not name.startswith(("bert/", *HEADS["masked_lm"]))
    ]
    module.other_heads = [tf.Variable(weights.tensors[name], name=name) for name in others]
    with tempfile.TemporaryDirectory() as temporary:
        for attribute, path in _write_assets(weights, Path(temporary)).items():
            setattr(module, attribute, tf.saved_model.Asset(str(path)))
        tf.saved_model.save(module, str(folder))


def _encode(encoder, inputs, training) -> tuple[tf.Tensor, dict]:
    """Returns the sequence output and the outputs of the module."""
    # Plain operations in training as well: who loads the module lacks our custom gradients.
    with inference():
        outputs = encoder(
            {ours: inputs[theirs] for theirs, ours in _INPUTS.items()},
            training=training,
            return_all_layers=True,
        )
    return outputs["sequence_output"], {
        "default": outputs["pooled_output"],
        "pooled_output": outputs["pooled_output"],
        "sequence_output": outputs["sequence_output"],
        "encoder_outputs": list(outputs["layer_outputs"]),
    }


def _masked_lm(encoder, weights):
    head = MaskedLMHead(
        _without_random_weights(weights.config), encoder.embeddings, dtype="float32"
    )
    own = [weight for weight in head.weights if weight.name.startswith(HEADS["masked_lm"])]
    _assign(own, weights.tensors)

    def call(inputs, training):
        sequence_output, outputs = _encode(encoder, inputs, training)
        with inference():
            logits = head(sequence_output, inputs["masked_lm_positions"])
        return outputs | {"mlm_logits": logits}

    module = tf.train.Checkpoint()
    _set_variables(module, [*encoder.weights, *own])
    module.__call__ = _traced(call, "masked_lm_positions")
    return module


def _traced(call, *more_inputs):
    """Returns a function traced for inference (the default) and for training."""
    inputs = {
        name: tf.TensorSpec([None, None], tf.int32, name) for name in (*_INPUTS, *more_inputs)
    }
    function = tf.function(lambda inputs, training=False: call(inputs, training), autograph=False)
    for training in (False, True):
        function.get_concrete_function(inputs, training=training)
    return function


def _set_variables(module, variables):
    module.variables = list(variables)
    module.trainable_variables = list(variables)
    module.regularization_losses = []


def _assign(variables, tensors):
    for variable in variables:
        variable.assign(tensors[variable.name.removesuffix(":0")])


def _without_random_weights(config):
    return config.model_copy(update={"initializer_range": 0.0})


def _write_assets(weights: ModelWeights, folder: Path) -> dict[str, Path]:
    """Writes the files that belong to the module; returns their paths by attribute."""
    files = {"config_file": folder / _CONFIG}
    files["config_file"].write_text(weights.config.to_json(), encoding="utf-8")
    for number, (name, content) in enumerate(weights.tokenizer_files.items()):
        kinds = {".model": "sp_model_file", ".txt": "vocab_file"}  # as in tensorflow/models
        attribute = kinds.get(Path(name).suffix, "")
        if not attribute or attribute in files:
            attribute = f"tokenizer_file_{number}"
        files[attribute] = folder / name
        files[attribute].write_bytes(content)
    return files
