"""What a head reads from a frozen encoder: chosen layers, joined."""

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.weights import NamedLayer
from albert_keras.models.feature_settings import EMBEDDINGS, FeatureSettings


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
