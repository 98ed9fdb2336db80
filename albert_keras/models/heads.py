"""The two pre-training heads."""

import tensorflow as tf

from albert_keras.layers.fused import bias_activation
from albert_keras.layers.weights import NamedDense, NamedLayer, NamedLayerNorm


class MaskedLMHead(NamedLayer):
    """Masked-LM head: scores every piece of the vocabulary at the masked positions.

    Its output table is the table of the word embeddings. It receives the embedding layer and not
    the variable, so that the table is counted, saved and restored once.

    Args:
        config: AlbertConfig.
        embeddings: FactorizedEmbedding. Owner of the tied table.
        scope, seed, **kwargs: As in `NamedLayer`.

    Call arguments:
        sequence_output: float [B, S, H].
        masked_lm_positions: int [B, P]. Unused ones point at 0 and have no weight in the loss.

    Returns:
        float32 [B, P, V]. Logits.

    Source:
        `get_masked_lm_output` in google-research/albert, `run_pretraining.py`.
    """

    def __init__(self, config, embeddings, scope="cls/predictions", seed=0, **kwargs):
        kwargs.setdefault("name", "masked_lm")
        super().__init__(scope, seed, config.initializer_range, **kwargs)
        shared = {"seed": seed, "stddev": self.stddev, "dtype": self.dtype_policy}
        size = config.embedding_size
        self.embeddings = embeddings
        self.activation = config.hidden_act
        self.transform = NamedDense(f"{scope}/transform/dense", config.hidden_size, size, **shared)
        self.normalization = NamedLayerNorm(
            f"{scope}/transform/LayerNorm", size, config.layer_norm_epsilon, **shared
        )
        self.output_bias = self.named_weight("output_bias", (config.vocab_size,), "zeros")

    def scores(self, masked):
        """Returns the logits without their bias: [B, P, H] -> [B, P, V] in the compute dtype."""
        shape = tf.concat([tf.shape(masked)[:2], self.output_bias.shape], 0)
        rows = tf.reshape(tf.cast(masked, self.compute_dtype), (-1, masked.shape[-1]))  # [B * P, H]
        rows = tf.matmul(rows, tf.cast(self.transform.kernel, self.compute_dtype))
        bias = tf.convert_to_tensor(self.transform.bias)
        rows = self.normalization(bias_activation(rows, bias, self.activation))  # [B * P, E]
        table = tf.cast(self.embeddings.word_embeddings, self.compute_dtype)  # [V, E]
        return tf.reshape(tf.matmul(rows, table, transpose_b=True), shape)

    def logits(self, scores):
        """Adds the bias to the scores: float32 [B, P, V]."""
        return tf.cast(scores, tf.float32) + self.output_bias

    def call(self, sequence_output, masked_lm_positions):
        masked = tf.gather(sequence_output, masked_lm_positions, batch_dims=1)  # [B, P, H]
        return self.logits(self.scores(masked))


class SentenceOrderHead(NamedLayer):
    """Sentence-order head: two segments are in order (class 0) or swapped (class 1), in float32.

    The same head serves next-sentence prediction: 0 is the next segment, 1 a random one.

    Args:
        config: AlbertConfig.
        scope, seed, **kwargs: As in `NamedLayer`.

    Call arguments:
        pooled_output: float [B, H].

    Returns:
        float32 [B, 2]. Logits.

    Source:
        `get_sentence_order_output` in google-research/albert, `run_pretraining.py`.
    """

    def __init__(self, config, scope="cls/seq_relationship", seed=0, **kwargs):
        kwargs.setdefault("name", "sentence_order")
        super().__init__(scope, seed, config.initializer_range, **kwargs)
        # One row per class, as the reference's checkpoints have it.
        self.output_weights = self.named_weight("output_weights", (2, config.hidden_size))
        self.output_bias = self.named_weight("output_bias", (2,), "zeros")

    def call(self, pooled_output):
        pooled_output = tf.cast(pooled_output, tf.float32)
        return tf.matmul(pooled_output, self.output_weights, transpose_b=True) + self.output_bias
