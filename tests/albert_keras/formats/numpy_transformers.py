"""Models of transformers in NumPy, float64: an oracle that knows their names and layouts.

It shares no code with `albert_keras`. Tensors come as a dict of arrays under the names of a model
with heads, sizes as a dict with the keys of `config.json`.
"""

import math

import numpy as np

ACTIVATIONS = {
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "relu": lambda x: np.maximum(x, 0),
}


#: Names of a block in BERT.
_BERT_BLOCK = (
    "encoder.layer.{}",
    ("attention.self.query", "attention.self.key", "attention.self.value"),
    ("attention.output.dense", "attention.output.LayerNorm"),
    ("intermediate.dense", "output.dense", "output.LayerNorm"),
)
#: Kind -> dense layer, normalization and bias of the masked-LM head.
_MASKED_LM = {
    "albert": ("predictions.dense", "predictions.LayerNorm", "predictions.bias"),
    "bert": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
}


def predict(tensors, sizes, input_ids, attention_mask, token_type_ids):
    """Returns (scores of pieces [B, S, V], of the sentences' order [B, 2]).

    Either is None if the model lacks the head.
    """
    tensors = {name: np.asarray(value, np.float64) for name, value in tensors.items()}
    model = sizes["model_type"]
    activation = ACTIVATIONS[sizes["hidden_act"]]
    num_heads = sizes["num_attention_heads"]

    def linear(x, name):
        return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def layer_norm(x, name):
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / scale * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def attend(x, names):
        query, key, value = (linear(x, name).reshape(*x.shape[:2], num_heads, -1) for name in names)
        scores = np.einsum("bihd,bjhd->bhij", query, key) / math.sqrt(query.shape[-1])
        scores = np.where(attention_mask[:, None, None, :] == 1, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.einsum("bhij,bjhd->bihd", shares, value).reshape(x.shape)

    def albert_layer(x, depth):
        group = int(depth / (sizes["num_hidden_layers"] / sizes["num_hidden_groups"]))
        for inner in range(sizes["inner_group_num"]):
            name = f"albert.encoder.albert_layer_groups.{group}.albert_layers.{inner}"
            parts = [f"{name}.attention.{part}" for part in ("query", "key", "value")]
            context = linear(attend(x, parts), f"{name}.attention.dense")
            x = layer_norm(x + context, f"{name}.attention.LayerNorm")
            wide = activation(linear(x, f"{name}.ffn"))
            x = layer_norm(linear(wide, f"{name}.ffn_output") + x, f"{name}.full_layer_layer_norm")
        return x

    def bert_layer(x, depth):
        scope, parts, (output, first_norm), (wide, narrow, norm) = _BERT_BLOCK
        name = f"{model}.{scope.format(depth)}"
        context = linear(attend(x, [f"{name}.{part}" for part in parts]), f"{name}.{output}")
        x = layer_norm(x + context, f"{name}.{first_norm}")
        wide = activation(linear(x, f"{name}.{wide}"))
        return layer_norm(linear(wide, f"{name}.{narrow}") + x, f"{name}.{norm}")

    words = tensors[f"{model}.embeddings.word_embeddings.weight"]
    x = words[input_ids]
    x = x + tensors[f"{model}.embeddings.token_type_embeddings.weight"][token_type_ids]
    x = x + tensors[f"{model}.embeddings.position_embeddings.weight"][: x.shape[1]]
    x = layer_norm(x, f"{model}.embeddings.LayerNorm")
    if model == "albert":
        x = linear(x, "albert.encoder.embedding_hidden_mapping_in")
    for depth in range(sizes["num_hidden_layers"]):
        x = (albert_layer if model == "albert" else bert_layer)(x, depth)

    scores = second = None
    dense, norm, bias = _MASKED_LM[model]
    if bias in tensors:
        hidden = layer_norm(activation(linear(x, dense)), norm)
        scores = hidden @ words.T + tensors[bias]
    order = "sop_classifier.classifier" if model == "albert" else "cls.seq_relationship"
    if f"{order}.weight" in tensors:
        pooled = np.tanh(
            linear(x[:, 0], "albert.pooler" if model == "albert" else "bert.pooler.dense")
        )
        second = linear(pooled, order)
    return scores, second
