"""ALBERT and BERT of transformers in NumPy, float64: an oracle that knows their names and layouts.

It shares no code with `albert_keras`. Tensors come as a dict of arrays under the names of a model
with both heads of pre-training, sizes as a dict with the keys of `config.json`.
"""

import math

import numpy as np

ACTIVATIONS = {
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "relu": lambda x: np.maximum(x, 0),
}


def predict(tensors, sizes, input_ids, attention_mask, token_type_ids):
    """Returns (scores of pieces [B, S, V], scores of the sentences' order [B, 2])."""
    tensors = {name: np.asarray(value, np.float64) for name, value in tensors.items()}
    activation = ACTIVATIONS[sizes["hidden_act"]]
    is_albert = sizes["model_type"] == "albert"
    model = "albert" if is_albert else "bert"

    def linear(x, name):
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def layer_norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / scale * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def attend(x, name):
        heads = sizes["num_attention_heads"]
        query, key, value = (
            linear(x, f"{name}{part}").reshape(*x.shape[:2], heads, -1)
            for part in ("query", "key", "value")
        )
        scores = np.einsum("bihd,bjhd->bhij", query, key) / math.sqrt(query.shape[-1])
        scores = np.where(attention_mask[:, None, None, :] == 1, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.einsum("bhij,bjhd->bihd", shares, value).reshape(x.shape)

    def albert_layer(x, depth):
        group = int(depth / (sizes["num_hidden_layers"] / sizes["num_hidden_groups"]))
        for inner in range(sizes["inner_group_num"]):
            name = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
            context = linear(attend(x, f"{name}.attention."), f"{name}.attention.dense")
            x = layer_norm(x + context, f"{name}.attention.LayerNorm")
            wide = activation(linear(x, f"{name}.ffn"))
            x = layer_norm(linear(wide, f"{name}.ffn_output") + x, f"{name}.full_layer_layer_norm")
        return x

    def bert_layer(x, depth):
        name = f"bert.encoder.layer.{depth}"
        context = linear(attend(x, f"{name}.attention.self."), f"{name}.attention.output.dense")
        x = layer_norm(x + context, f"{name}.attention.output.LayerNorm")
        wide = activation(linear(x, f"{name}.intermediate.dense"))
        return layer_norm(linear(wide, f"{name}.output.dense") + x, f"{name}.output.LayerNorm")

    words = tensors[f"{model}.embeddings.word_embeddings.weight"]
    x = words[input_ids]
    x = x + tensors[f"{model}.embeddings.token_type_embeddings.weight"][token_type_ids]
    x = x + tensors[f"{model}.embeddings.position_embeddings.weight"][: x.shape[1]]
    x = layer_norm(x, f"{model}.embeddings.LayerNorm")
    if is_albert:
        x = linear(x, "albert.encoder.embedding_hidden_mapping_in")
    for depth in range(sizes["num_hidden_layers"]):
        x = (albert_layer if is_albert else bert_layer)(x, depth)
    pooled = np.tanh(linear(x[:, 0], "albert.pooler" if is_albert else "bert.pooler.dense"))
    start = "predictions" if is_albert else "cls.predictions.transform"
    hidden = layer_norm(activation(linear(x, f"{start}.dense")), f"{start}.LayerNorm")
    bias = tensors["predictions.bias" if is_albert else "cls.predictions.bias"]
    order = "sop_classifier.classifier" if is_albert else "cls.seq_relationship"
    return hidden @ words.T + bias, linear(pooled, order)
