"""The ALBERT encoder in NumPy, float64: an oracle written from the reference's description.

It shares no code with `albert_keras`. Weights come as a dict of arrays under the names of the
reference's checkpoints, sizes as a dict with the keys of `albert_config.json`.
"""

import math

import numpy as np

ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu_erf": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "relu": lambda x: np.maximum(x, 0),
}


def encode(weights, sizes, input_ids, input_mask, segment_ids):
    """Returns (sequence output [B, S, H], pooled output [B, H], list of all block outputs)."""

    def dense(x, name):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def layer_norm(x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        gamma, beta = weights[f"{name}/gamma"], weights[f"{name}/beta"]
        return (x - mean) / np.sqrt(variance + 1e-12) * gamma + beta

    def attention(x, name):
        heads = sizes["num_attention_heads"]
        size = x.shape[-1] // heads
        contexts = []
        for head in range(heads):
            columns = slice(head * size, (head + 1) * size)
            query, key, value = (
                dense(x, f"{name}/attention_1/self/{part}")[:, :, columns]
                for part in ("query", "key", "value")
            )
            scores = np.einsum("bid,bjd->bij", query, key) / math.sqrt(size)
            scores = scores - 10_000.0 * (1 - input_mask[:, None, :])
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            contexts.append(np.einsum("bij,bjd->bid", shares, value))
        context = dense(np.concatenate(contexts, -1), f"{name}/attention_1/output/dense")
        return layer_norm(x + context, f"{name}/LayerNorm")

    def feed_forward(x, name):
        inner = dense(x, f"{name}/ffn_1/intermediate/dense")
        inner = ACTIVATIONS[sizes["hidden_act"]](inner)
        return layer_norm(
            x + dense(inner, f"{name}/ffn_1/intermediate/output/dense"), f"{name}/LayerNorm_1"
        )

    weights = {name: np.asarray(value, np.float64) for name, value in weights.items()}
    input_mask = np.asarray(input_mask, np.float64)
    x = weights["bert/embeddings/word_embeddings"][input_ids]
    x = x + weights["bert/embeddings/token_type_embeddings"][segment_ids]
    x = x + weights["bert/embeddings/position_embeddings"][: x.shape[1]]
    x = layer_norm(x, "bert/embeddings/LayerNorm")
    if sizes["embedding_size"] != sizes["hidden_size"]:
        x = dense(x, "bert/encoder/embedding_hidden_mapping_in")
    outputs = []
    depths, groups = sizes["num_hidden_layers"], sizes["num_hidden_groups"]
    for depth in range(depths):
        group = math.floor(depth / depths * groups)
        attention_group = group if sizes["sharing"] in ("all", "attention") else depth
        feed_forward_group = group if sizes["sharing"] in ("all", "ffn") else depth
        for inner in range(sizes["inner_group_num"]):
            block = "bert/encoder/transformer/group_{}/inner_group_{}"
            x = attention(x, block.format(attention_group, inner))
            x = feed_forward(x, block.format(feed_forward_group, inner))
            outputs.append(x)
    return x, np.tanh(dense(x[:, 0], "bert/pooler/dense")), outputs


def scramble(model, seed=1):
    """Gives every weight of a model random values, so that none is hidden by being 0 or 1."""
    rng = np.random.default_rng(seed)
    model.set_weights([weight + rng.normal(0, 0.1, weight.shape) for weight in model.get_weights()])


def weights_by_name(model):
    """Returns the model's weights as a dict of arrays, under their names."""
    return {weight.name.removesuffix(":0"): weight.numpy() for weight in model.weights}
