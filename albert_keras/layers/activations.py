"""The activation functions of `AlbertConfig.hidden_act`; `fused.py` applies them in float32."""

import math

import tensorflow as tf

from albert_keras.layers.kernels import differentiable


@differentiable
def gelu_tanh(inputs):
    """Returns the tanh form of GELU, the one of the reference and of its released weights.

    The gradient is written out: TensorFlow's needs a `pow` and twice the memory passes.

    Source:
        `gelu` in google-research/albert, `modeling.py`; https://arxiv.org/abs/1606.08415.
    """
    scale = math.sqrt(2 / math.pi)
    cubic = 0.044715
    square = inputs * inputs
    half = 0.5 * tf.tanh(inputs * (scale + scale * cubic * square)) + 0.5

    def gradient(upstream):
        # d/dx = h + x h', with h = (1 + tanh u) / 2 and h' = 2 h (1 - h) u'
        slope = inputs * (2 * scale + 6 * scale * cubic * square)
        return upstream * (half + half * (1.0 - half) * slope)

    return inputs * half, gradient


def gelu_erf(inputs):
    """Returns the exact GELU, x times the normal distribution function, as in BERT."""
    return 0.5 * inputs * (1.0 + tf.math.erf(inputs * math.sqrt(0.5)))


#: Values of `AlbertConfig.hidden_act`.
ACTIVATIONS = {
    "gelu": gelu_tanh,
    "gelu_erf": gelu_erf,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "silu": tf.nn.silu,
    "linear": tf.identity,
}
