"""What a head reads from a frozen encoder: chosen layers, joined, perhaps through a BiLSTM."""

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.layers.rows import lengthened, shape_of, shortened
from albert_keras.layers.weights import NamedDense, NamedLayer
from albert_keras.models.feature_settings import EMBEDDINGS, FeatureSettings

_LSTM_LAYERS = 2
#: Added to the input of the forget gates, so that an LSTM remembers at the beginning.
_FORGET_BIAS = 1.0


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
        input_mask: int [B, S]. 1 for a real token, 0 for padding, in any pattern.
        skips_padding: bool. Whether the BiLSTM ends with the longest sequence of the batch. Shapes
            then depend on the batch, which TPUs do not allow.

    Returns:
        float32 [B, S, `size`].

    Attributes:
        size: int. Width of the vectors.
    """

    def __init__(self, config: AlbertConfig, settings: FeatureSettings, **kwargs):
        kwargs.setdefault("name", "features")
        super().__init__("features", **kwargs)
        self.layer_numbers = settings.layer_numbers(config)
        count, units = len(self.layer_numbers), settings.units(config)
        self._has_sum = count > 1 and not settings.is_concatenated(config)
        if self._has_sum:
            self.layer_weights = self.named_weight("layer_weights", (count,), "zeros")
            self.scale = self.named_weight("scale", (), "ones")
        self.size = config.hidden_size * (1 if self._has_sum else count)
        self.lstm_layers = []
        for number in range(_LSTM_LAYERS if units else 0):
            layer = BiLSTM(f"features/bilstm_{number}", self.size, units, seed=self.seed)
            self.lstm_layers.append(layer)
            self.size = 2 * units

    def call(self, outputs, input_mask, skips_padding=False):
        layers = {EMBEDDINGS: outputs["embedding_output"]}
        layers |= dict(enumerate(outputs["layer_outputs"], start=1))
        # Without a gradient nothing that the encoder computed is stored for a backward pass.
        chosen = [
            tf.stop_gradient(tf.cast(layers[number], tf.float32)) for number in self.layer_numbers
        ]
        if self._has_sum:
            weights = tf.nn.softmax(tf.convert_to_tensor(self.layer_weights))
            hidden = self.scale * tf.einsum("j,jbsh->bsh", weights, tf.stack(chosen))
        else:
            hidden = tf.concat(chosen, axis=-1)
        if not self.lstm_layers:
            return hidden
        length = shape_of(hidden)[1]
        if skips_padding:
            hidden, input_mask = shortened([hidden, input_mask], input_mask)
        for layer in self.lstm_layers:
            hidden = layer(hidden, input_mask)
        return lengthened(hidden, length) if skips_padding else hidden


class BiLSTM(NamedLayer):
    """One layer of LSTMs in both directions, in float32. Padding changes no state.

    Args:
        scope: str. Prefix of the names of the weights.
        input_size: int. I.
        units: int. U, of each direction.
        **kwargs: `seed`, `name`, as in `NamedLayer`.

    Call arguments:
        inputs: float32 [B, S, I].
        input_mask: int [B, S]. 1 for a real token, 0 for padding, in any pattern.

    Returns:
        float32 [B, S, 2 U]. At padding there is the state of a neighbour.

    Source:
        Hochreiter and Schmidhuber, 1997; the forget gate of Gers et al., 2000, with a bias of 1
        (Jozefowicz et al., 2015). Kernels have the standard deviation of PyTorch's, 1 / sqrt(3 U).
    """

    def __init__(self, scope, input_size, units, **kwargs):
        super().__init__(scope, stddev=(3 * units) ** -0.5, dtype="float32", **kwargs)
        shared = {"seed": self.seed, "stddev": self.stddev, "dtype": "float32"}
        self.units = units
        self.forward = NamedDense(f"{scope}/forward", input_size, 4 * units, **shared)
        self.backward = NamedDense(f"{scope}/backward", input_size, 4 * units, **shared)
        # Gates in the order input, forget, output, candidate.
        self.recurrent = self.named_weight("recurrent/kernel", (2 * units, 4 * units))

    def call(self, inputs, input_mask):
        # Both directions run in one loop; the second one has the positions in reverse.
        gates = tf.stack([self.forward(inputs), tf.reverse(self.backward(inputs), [1])])
        is_real = tf.cast(input_mask, tf.bool)
        is_real = tf.stack([is_real, tf.reverse(is_real, [1])])[..., None]  # [2, B, S, 1]
        recurrent = tf.reshape(self.recurrent, (2, self.units, 4 * self.units))

        def step(state, now):
            hidden, cell = state  # [2, B, U]
            gates, is_real = now
            insert, forget, output, candidate = tf.split(
                gates + tf.matmul(hidden, recurrent), 4, axis=-1
            )
            new_cell = tf.sigmoid(forget + _FORGET_BIAS) * cell
            new_cell += tf.sigmoid(insert) * tf.tanh(candidate)
            new_hidden = tf.sigmoid(output) * tf.tanh(new_cell)
            return tf.where(is_real, new_hidden, hidden), tf.where(is_real, new_cell, cell)

        begin = tf.zeros_like(gates[:, :, 0, : self.units])
        by_position = [tf.transpose(each, (2, 0, 1, 3)) for each in (gates, is_real)]
        hidden, _ = tf.scan(step, tuple(by_position), (begin, begin))  # [S, 2, B, U]
        forward, backward = tf.unstack(tf.transpose(hidden, (1, 2, 0, 3)))
        return tf.concat([forward, tf.reverse(backward, [1])], axis=-1)
