"""ALBERT, BERT and their relatives in NumPy, float64, written from the reference's description.

It shares no code with the models of `albert_keras`, so that the two can check each other. Weights
are a dict of arrays with the names of the reference's checkpoints, sizes a dict with the keys of
`albert_config.json`.
"""

import math

import numpy as np
from scipy.special import erf

from albert_keras.runs.tensors import weight_names

ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "linear": lambda x: x,
}
_PROJECTION = "bert/encoder/embedding_hidden_mapping_in"
_MASKED_LM, _ORDER = "cls/predictions", "cls/seq_relationship"


def encode(weights, sizes, input_ids, input_mask, segment_ids, attention=None):
    """Runs the encoder on int arrays [B, S].

    Returns sequence output [B, S, H], pooled output [B, H], list of all block outputs. The
    probabilities of each attention, [B, heads, S, S], are added to the list `attention`.
    """
    weights = _Weights(weights, sizes.get("layer_norm_epsilon", 1e-12))
    x = weights["bert/embeddings/word_embeddings"][input_ids]
    types, offset = sizes.get("type_vocab_size", 2), sizes.get("position_offset", 0)
    if types:
        segments = segment_ids if types > 1 else np.zeros_like(segment_ids)
        x = x + weights["bert/embeddings/token_type_embeddings"][segments]
    positions = np.broadcast_to(np.arange(x.shape[1]), x.shape[:2])
    if offset:  # real tokens are counted, and padding has the row before the first one's
        is_real = np.asarray(input_mask) != 0
        positions = np.where(is_real, np.cumsum(is_real, axis=1) - 1, -1) + offset
    if sizes.get("position_embedding", "absolute") == "absolute":
        x = x + weights["bert/embeddings/position_embeddings"][positions]
    input_mask = np.asarray(input_mask, np.float64)
    x = weights.layer_norm(x, "bert/embeddings/LayerNorm")
    # Where E = H the reference has no projection; some models trained elsewhere have one.
    is_projected = sizes["embedding_size"] != sizes["hidden_size"]
    if is_projected or sizes.get("embedding_projection") == "always":
        x = weights.dense(x, _PROJECTION)
    outputs = []
    depths, groups = sizes["num_hidden_layers"], sizes["num_hidden_groups"]
    for depth in range(depths):
        group = depth * groups // depths
        attention_group = group if sizes["sharing"] in ("all", "attention") else depth
        feed_forward_group = group if sizes["sharing"] in ("all", "ffn") else depth
        for inner in range(sizes["inner_group_num"]):
            block = "bert/encoder/transformer/group_{}/inner_group_{}"
            name = block.format(attention_group, inner)
            x, probs = _attention(weights, sizes, x, input_mask, name)
            if attention is not None:
                attention.append(probs)
            x = _feed_forward(weights, sizes, x, block.format(feed_forward_group, inner))
            outputs.append(x)
    pooled = x[:, 0]
    if "bert/pooler/dense/kernel" in weights:
        activation = ACTIVATIONS[sizes.get("pooler_activation", "tanh")]
        pooled = activation(weights.dense(pooled, "bert/pooler/dense"))
    return x, pooled, outputs


def masked_lm_logits(weights, sizes, sequence_output):
    """Scores every vocabulary entry at every position: [B, S, H] -> [B, S, V]."""
    weights = _Weights(weights, sizes.get("layer_norm_epsilon", 1e-12))
    x = weights.dense(sequence_output, f"{_MASKED_LM}/transform/dense")
    x = ACTIVATIONS[sizes["hidden_act"]](x)
    x = weights.layer_norm(x, f"{_MASKED_LM}/transform/LayerNorm")
    table = weights["bert/embeddings/word_embeddings"]
    return x @ table.T + weights[f"{_MASKED_LM}/output_bias"]


def sentence_order_logits(weights, pooled_output):
    """Scores the order of two segments: [B, H] -> [B, 2]."""
    weights = _Weights(weights)
    return pooled_output @ weights[f"{_ORDER}/output_weights"].T + weights[f"{_ORDER}/output_bias"]


class _Weights:
    """Weights in float64, converted when they are used: all at once might not fit into memory."""

    def __init__(self, weights, epsilon=1e-12):
        self._weights, self._epsilon = weights, epsilon

    def __contains__(self, name):
        return name in self._weights

    def __getitem__(self, name):
        return np.asarray(self._weights[name], np.float64)

    def dense(self, x, name):
        return x @ self[f"{name}/kernel"] + self[f"{name}/bias"]

    def layer_norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        normal = (x - mean) / np.sqrt(variance + self._epsilon)
        return normal * self[f"{name}/gamma"] + self[f"{name}/beta"]


def _attention(weights, sizes, x, input_mask, name):
    heads = sizes["num_attention_heads"]
    size = x.shape[-1] // heads
    query, key, value = (
        weights.dense(x, f"{name}/attention_1/self/{part}") for part in ("query", "key", "value")
    )
    contexts, all_probs = [], []
    for head in range(heads):
        columns = slice(head * size, (head + 1) * size)
        queries, keys = query[:, :, columns], key[:, :, columns]
        if sizes.get("position_embedding") == "rotary":
            queries, keys = _rotated(queries), _rotated(keys)
        scores = np.einsum("bid,bjd->bij", queries, keys)
        scores = scores / math.sqrt(size) - 10_000.0 * (1 - input_mask[:, None, :])
        probs = np.exp(scores - scores.max(-1, keepdims=True))
        probs /= probs.sum(-1, keepdims=True)
        all_probs.append(probs)
        contexts.append(np.einsum("bij,bjd->bid", probs, value[:, :, columns]))
    context = weights.dense(np.concatenate(contexts, -1), f"{name}/attention_1/output/dense")
    return weights.layer_norm(x + context, f"{name}/LayerNorm"), np.stack(all_probs, axis=1)


def _rotated(vectors):
    """Turns neighbouring dimensions, as complex numbers, by their positions: [B, S, D]."""
    half = vectors.shape[-1] // 2
    angles = np.arange(vectors.shape[1])[:, None] / 10_000 ** (np.arange(half) / half)
    pairs = (vectors[..., 0::2] + 1j * vectors[..., 1::2]) * np.exp(1j * angles)
    return np.stack([pairs.real, pairs.imag], axis=-1).reshape(vectors.shape)


def _feed_forward(weights, sizes, x, name):
    inner = weights.dense(x, f"{name}/ffn_1/intermediate/dense")
    inner = ACTIVATIONS[sizes["hidden_act"]](inner)
    inner = weights.dense(inner, f"{name}/ffn_1/intermediate/output/dense")
    return weights.layer_norm(x + inner, f"{name}/LayerNorm_1")


def scramble(model, seed=1):
    """Gives every weight of a model random values, so that none is hidden by being 0 or 1."""
    rng = np.random.default_rng(seed)
    model.set_weights([weight + rng.normal(0, 0.1, weight.shape) for weight in model.get_weights()])


def weights_by_name(model):
    """Returns the model's weights as a dict of arrays, under their names."""
    return {name: weight.numpy() for name, weight in weight_names(model).items()}
