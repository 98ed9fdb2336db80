"""The heads of fine-tuned models, under the names of the reference's checkpoints."""

import tensorflow as tf

from albert_keras.layers.fused import dense
from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm

#: The reference initializes its linear heads with this, whatever the configuration.
_STDDEV = 0.02
#: Excludes a position from a softmax. Used only in float32: float16 has no such number.
_OUT = -1e30
#: Number of best starts, and of best ends of each (`start_n_top`, `end_n_top`).
NUM_STARTS = NUM_ENDS = 5


class LinearHead(NamedLayer):
    """Dropout and a linear layer in float32: scores of classes, tags or options.

    Args:
        config: AlbertConfig.
        num_outputs: int. C.
        dropout: float. Rate in training.
        scope, seed, **kwargs: As in `NamedLayer`; a scope of "" is the root.
        size: int or None. Width of the inputs, H; None is the hidden size.

    Call arguments:
        inputs: float [B, ..., H].
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        float32 [B, ..., C]. Logits.

    Source:
        google-research/albert, `classifier_utils.py` and `race_utils.py`. Tagging, which it does
        not have, uses the same names.
    """

    def __init__(self, config, num_outputs, dropout=0.1, scope="", seed=0, size=None, **kwargs):
        kwargs.setdefault("name", "head")
        super().__init__(scope, seed, _STDDEV, **kwargs)
        self.inputs_dropout = self.dropout(dropout, "dropout")
        # One row per class, as in the reference's checkpoints.
        size = size or config.hidden_size
        self.output_weights = self.named_weight("output_weights", (num_outputs, size))
        self.output_bias = self.named_weight("output_bias", (num_outputs,), "zeros")

    def call(self, inputs, dropout_seed=None, training=None):
        inputs = self.inputs_dropout(inputs, dropout_seed, training=training)
        outputs, size = self.output_weights.shape
        shape = tf.concat([tf.shape(inputs)[:-1], [outputs]], 0)
        rows = tf.reshape(tf.cast(inputs, tf.float32), (-1, size))
        logits = tf.matmul(rows, self.output_weights, transpose_b=True) + self.output_bias
        return tf.reshape(logits, shape)


class SpansHead(LinearHead):
    """Scores each position as the start and as the end of an answer (SQuAD 1.1).

    Deviation from google-research/albert: padding is excluded from the softmax of the loss, with
    scores of -1e30. So neither skipped padding nor another S changes anything.

    Args:
        config: AlbertConfig.
        seed, **kwargs: As in `LinearHead`: `size`, `name`, `dtype`.

    Call arguments:
        sequence_output: float [B, S, H].
        inputs: dict. "input_mask" int [B, S], 1 for a real token (all by default).

    Returns:
        dict. "start_logits" and "end_logits", float32 [B, S].

    Source:
        `create_v1_model` in google-research/albert, `squad_utils.py`; there is no dropout.
    """

    def __init__(self, config, seed=0, **kwargs):
        super().__init__(config, 2, 0.0, "cls/squad", seed, **kwargs)

    def call(self, sequence_output, inputs, dropout_seed=None, training=None):
        logits = super().call(sequence_output, dropout_seed, training)  # [B, S, 2]
        is_out = _is_padding(inputs, sequence_output)
        starts, ends = (tf.where(is_out, _OUT, logits[..., column]) for column in (0, 1))
        return {"start_logits": starts, "end_logits": ends}


class SpansOrNoneHead(NamedLayer):
    """Scores starts, ends given a start, and the absence of an answer (SQuAD 2.0).

    Ends are given the right start if it is known, otherwise each of the five best.

    Args:
        config: AlbertConfig.
        dropout: float. Rate in training, before the last layer of "no answer".
        seed: int. The model's seed.
        size: int or None. Width of the inputs; None is the hidden size, which the layers between
            inputs and outputs have in any case.
        **kwargs: `name`, `dtype`, as in Keras.

    Call arguments:
        sequence_output: float [B, S, H].
        inputs: dict. "p_mask" int [B, S], 1 where an answer can neither start nor end, 0 at [CLS];
            "input_mask" int [B, S], 1 for a real token (all by default); "start_positions" int
            [B], if answers are known.
        dropout_seed: DropoutSeed or None. See `layers/dropout.py`.

    Returns:
        dict. "null_logits" float32 [B], positive where there is no answer. With known starts
        "start_log_probs" and "end_log_probs", float32 [B, S]; otherwise the best ones:
        "start_log_probs" float32 and "start_indices" int32 [B, 5], "end_log_probs" float32 and
        "end_indices" int32 [B, 25], the ends of the first start first. If S < 5, missing
        positions are [CLS] with -1e30.

    Source:
        `create_v2_model` in google-research/albert, `squad_utils.py`.
    """

    def __init__(self, config, dropout=0.1, seed=0, size=None, **kwargs):
        kwargs.setdefault("name", "head")
        super().__init__("answer_class", seed, config.initializer_range, **kwargs)
        inner = config.hidden_size
        size = size or inner
        shared = {"seed": seed, "stddev": self.stddev, "dtype": self.dtype_policy}
        in_float32 = shared | {"dtype": "float32"}
        self.start = NamedDense("start_logits/dense", size, 1, **in_float32)
        self.end_hidden = NamedDense("end_logits/dense_0", 2 * size, inner, **shared)
        self.end_normalization = NamedLayerNorm(
            "end_logits/LayerNorm", inner, config.layer_norm_epsilon, **shared
        )
        self.end = NamedDense("end_logits/dense_1", inner, 1, **in_float32)
        self.null_hidden = NamedDense("answer_class/dense_0", 2 * size, inner, **in_float32)
        self.null_dropout = self.dropout(dropout, "dropout")
        self.null_kernel = self.named_weight("dense_1/kernel", (inner, 1))  # has no bias

    def call(self, sequence_output, inputs, dropout_seed=None, training=None):
        is_out = tf.cast(inputs["p_mask"], tf.bool) | _is_padding(inputs, sequence_output)
        hidden = tf.cast(sequence_output, tf.float32)
        log_probs = _log_probs(self.start(hidden), is_out)  # [B, S]
        outputs = {"null_logits": self._null_logits(hidden, log_probs, dropout_seed, training)}
        if "start_positions" in inputs:
            starts = tf.convert_to_tensor(inputs["start_positions"])[:, None]
            ends = self._end_log_probs(sequence_output, starts, is_out)[:, 0]
            return outputs | {"start_log_probs": log_probs, "end_log_probs": ends}
        start_log_probs, starts = _best(log_probs, NUM_STARTS)
        end_log_probs, ends = _best(
            self._end_log_probs(sequence_output, starts, is_out), NUM_ENDS
        )  # [B, 5, 5]
        return outputs | {
            "start_log_probs": start_log_probs,
            "start_indices": starts,
            "end_log_probs": tf.reshape(end_log_probs, (-1, NUM_STARTS * NUM_ENDS)),
            "end_indices": tf.reshape(ends, (-1, NUM_STARTS * NUM_ENDS)),
        }

    def _end_log_probs(self, hidden, starts, is_out):
        """Returns log-probabilities of ends after each of K starts, int [B, K]: [B, K, S]."""
        size = hidden.shape[-1]
        hidden = tf.cast(hidden, self.compute_dtype)
        at_starts = tf.gather(hidden, starts, batch_dims=1)  # [B, K, H]
        # The product of [token, start] as the sum of two, so that no start is multiplied S times.
        for_tokens, for_starts = tf.split(tf.cast(self.end_hidden.kernel, self.compute_dtype), 2)
        bias = tf.convert_to_tensor(self.end_hidden.bias)
        tokens = dense(tf.reshape(hidden, (-1, size)), for_tokens, bias)
        inner, shape = [for_tokens.shape[1]], tf.shape(hidden)[:-1]
        tokens = tf.reshape(tokens, tf.concat([shape, inner], 0))[:, None]  # [B, 1, S, H]
        at_starts = tf.matmul(tf.reshape(at_starts, (-1, size)), for_starts)
        at_starts = tf.reshape(at_starts, tf.concat([tf.shape(starts), inner], 0))  # [B, K, H]
        joined = self.end_normalization(tf.tanh(tokens + at_starts[:, :, None]))  # [B, K, S, H]
        return _log_probs(self.end(joined), is_out[:, None])

    def _null_logits(self, hidden, start_log_probs, dropout_seed, training):
        at_starts = tf.einsum("bs,bsh->bh", tf.exp(start_log_probs), hidden)
        joined = tf.tanh(self.null_hidden(tf.concat([at_starts, hidden[:, 0]], axis=-1)))
        joined = self.null_dropout(joined, dropout_seed, training=training)
        return tf.matmul(tf.cast(joined, tf.float32), self.null_kernel)[:, 0]


def _is_padding(inputs, sequence_output):
    input_mask = inputs.get("input_mask")
    if input_mask is None:
        return tf.zeros(tf.shape(sequence_output)[:2], tf.bool)
    return ~tf.cast(input_mask, tf.bool)


def _log_probs(logits, is_out):
    """Normalises over positions: float32 [..., S, 1] -> [..., S]."""
    return tf.nn.log_softmax(tf.where(is_out, _OUT, logits[..., 0]))


def _best(log_probs, number):
    """Returns the largest log-probabilities and positions: [..., S] -> [..., number] each."""
    length = tf.shape(log_probs)[-1]
    missing = tf.maximum(number - length, 0)
    paddings = [[0, 0]] * (log_probs.shape.rank - 1) + [[0, missing]]
    largest, positions = tf.math.top_k(tf.pad(log_probs, paddings, constant_values=_OUT), number)
    return largest, tf.where(positions < length, positions, 0)
