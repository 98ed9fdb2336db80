"""The base class of models for tasks: an encoder, trained or frozen, and what a head reads."""

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.dropout import DropoutSeed
from albert_keras.layers.kernels import inference
from albert_keras.layers.rows import token_mask
from albert_keras.layers.weights import NamedLayer, seed_of_model
from albert_keras.models.encoder import AlbertEncoder, ConfiguredModel
from albert_keras.models.encoder_inputs import check_names, encoder_inputs
from albert_keras.models.feature_settings import EMBEDDINGS, FeatureSettings
from albert_keras.models.pooling import mean_over_tokens


class FrozenFeatures(NamedLayer):
    """Vectors of positions from the layers of an encoder, which receives no gradient.

    The weighted sum is γ Σ softmax(w)_j h_j, which begins as the mean of the layers (Peters et al.,
    2018, https://arxiv.org/abs/1802.05365, equation 1). BERT's paper does not state its own.

    Args:
        config: AlbertConfig of the encoder.
        settings: FeatureSettings.
        **kwargs: `seed`, `name`, `dtype`, as in `NamedLayer`.

    Call arguments:
        outputs: dict. What AlbertEncoder returns with `return_all_layers`, each [B, S, H].

    Returns:
        float32 [B, S, `size`].

    Attributes:
        size: int. Width of the vectors.
    """

    def __init__(self, config: AlbertConfig, settings: FeatureSettings, **kwargs):
        kwargs.setdefault("name", "features")
        super().__init__("features", **kwargs)
        self.layer_numbers = settings.layer_numbers(config)
        count = len(self.layer_numbers)
        self._has_sum = count > 1 and not settings.is_concatenated(config)
        if self._has_sum:
            self.layer_weights = self.named_weight("layer_weights", (count,), "zeros")
            self.scale = self.named_weight("scale", (), "ones")
        self.size = config.hidden_size * (1 if self._has_sum else count)

    def call(self, outputs):
        layers = {EMBEDDINGS: outputs["embedding_output"]}
        layers |= dict(enumerate(outputs["layer_outputs"], start=1))
        # Without a gradient nothing that the encoder computed is stored for a backward pass.
        chosen = [
            tf.stop_gradient(tf.cast(layers[number], tf.float32)) for number in self.layer_numbers
        ]
        if self._has_sum:
            weights = tf.nn.softmax(tf.convert_to_tensor(self.layer_weights))
            return self.scale * tf.einsum("j,jbsh->bsh", weights, tf.stack(chosen))
        return tf.concat(chosen, axis=-1)


class AlbertForTask(ConfiguredModel, keras.Model):
    """Base class of models for tasks: an encoder and a head. All weights exist after construction.

    Args:
        config: AlbertConfig.
        head_dropout: float. Rate of the head's dropout in training.
        seed: int or None. As in `AlbertEncoder`; it determines dropout, too.
        dtype, recompute, skips_padding: As in `AlbertEncoder`.
        features: FeatureSettings, their values by name, or None. If they freeze the encoder, it has
            no dropout, its weights are not trainable, and the head reads `FrozenFeatures`; a head
            for whole texts then reads their mean over the real tokens, not the pooler.

    Attributes:
        encoder: AlbertEncoder.
        features: FrozenFeatures or None.
        head: NamedLayer.
    """

    _reads_pooler = False

    def __init__(
        self,
        config: AlbertConfig,
        head_dropout: float = 0.1,
        seed: int | None = None,
        dtype: Any = None,
        recompute: bool = False,
        skips_padding: bool = False,
        features: FeatureSettings | Mapping[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ):
        super().__init__(name=name, dtype=dtype, **kwargs)
        if not 0 <= head_dropout < 1:
            raise ValueError(
                f"`head_dropout` must be at least 0 and below 1. Received: {head_dropout}."
            )
        self.config = config
        self.head_dropout = head_dropout
        self.seed = seed_of_model(seed)
        self.feature_settings = FeatureSettings.part_of(dict(features or {}))
        is_frozen = self.feature_settings.freeze_encoder
        self._reads_pooler = self._reads_pooler and not is_frozen
        self.encoder = AlbertEncoder(
            _without_dropout(config) if is_frozen else config,
            recompute=recompute and not is_frozen,
            skips_padding=skips_padding,
            pooler=config.pooler == "always" or self._reads_pooler,
            name="bert",
            is_part=True,
            **self._shared,
        )
        self.encoder.trainable = not is_frozen
        if self.encoder.pooler is not None and not self._reads_pooler:
            self.encoder.pooler.trainable = False  # no loss depends on it
        self.features: FrozenFeatures | None = None
        if is_frozen:
            self.features = FrozenFeatures(config, self.feature_settings, **self._shared)
        self.built = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "encoder" and hasattr(self, name):
            raise AttributeError(
                "`encoder` of a model must not be replaced, as both would be in its file. Copy "
                "weights: `model.encoder.set_weights(other.encoder.get_weights())`."
            )
        super().__setattr__(name, value)

    @property
    def _shared(self):
        return {"seed": self.seed, "dtype": self.dtype_policy}

    @property
    def _of_head(self):
        """Arguments of every head."""
        return self._shared | {"size": self.features and self.features.size}

    def outputs_of(
        self,
        features: Mapping[str, Any],
        training: Any = False,
        dropout_seed: DropoutSeed | None = None,
    ) -> dict[str, Any]:
        """Returns the outputs for features: what the loss and exports read, such as "logits"."""
        if training and dropout_seed is None:
            rows = tf.shape(features["input_ids"])[0]
            dropout_seed = self.encoder.dropout_steps.next_seed(rows)
        check_names(features)
        with inference(not training):
            return self._outputs(features, training, dropout_seed)

    def _outputs(self, inputs, training, dropout_seed):
        """Returns the outputs for features; each model defines its own."""
        raise NotImplementedError

    def _sequence(self, inputs, training, dropout_seed):
        """Returns the output for every position, [B, S, H]; of a frozen encoder its features."""
        if self.features is not None:
            outputs = self.encoder(
                encoder_inputs(inputs), training=training, return_all_layers=True
            )
            return self.features(outputs)
        outputs = self.encoder(encoder_inputs(inputs), training=training, dropout_seed=dropout_seed)
        return outputs["sequence_output"]

    def _pooled(self, inputs, training, dropout_seed):
        """Returns the pooled output, [B, H]; the last block is computed only at [CLS].

        Of a model that does not read the pooler it is the mean over the tokens, and so of a frozen
        encoder: its [CLS] was not trained for a task.
        """
        if not self._reads_pooler:
            hidden = self._sequence(inputs, training, dropout_seed)
            return mean_over_tokens(hidden, token_mask(inputs))
        positions = tf.zeros_like(tf.convert_to_tensor(inputs["input_ids"])[:, :1])
        outputs = self.encoder(
            encoder_inputs(inputs),
            training=training,
            dropout_seed=dropout_seed,
            positions=positions,
        )
        return outputs["pooled_output"]

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"head_dropout": self.head_dropout}
        if self.features is not None:
            config["features"] = self.feature_settings.model_dump()
        return config


def _without_dropout(config):
    return config.replace(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
