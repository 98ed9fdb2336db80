"""ALBERT of transformers on PyTorch, eager and compiled; and its ONNX file for other runtimes."""

import re
from importlib.metadata import version

import numpy as np

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.inferrers.questions import difference
from data_pipeline.errors import InputError

_ACTIVATIONS = {"gelu": "gelu_new", "gelu_erf": "gelu", "relu": "relu", "silu": "silu"}
#: First part of our weights' names -> theirs; inside a block what follows `inner_group_K/`.
_LAYERS = {
    "bert/embeddings/LayerNorm": "embeddings.LayerNorm",
    "bert/encoder/embedding_hidden_mapping_in": "encoder.embedding_hidden_mapping_in",
    "bert/pooler/dense": "pooler",
}
_BLOCK_LAYERS = {
    "attention_1/self/query": "attention.query",
    "attention_1/self/key": "attention.key",
    "attention_1/self/value": "attention.value",
    "attention_1/output/dense": "attention.dense",
    "LayerNorm": "attention.LayerNorm",
    "ffn_1/intermediate/dense": "ffn",
    "ffn_1/intermediate/output/dense": "ffn_output",
    "LayerNorm_1": "full_layer_layer_norm",
}
_BLOCK = r"bert/encoder/transformer/group_(\d+)/inner_group_(\d+)/(.+)"
_TABLES = ("word_embeddings", "token_type_embeddings", "position_embeddings")
_PARTS = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
#: Fields of AlbertConfig that are called the same there.
_SAME_NAMES = (
    "vocab_size",
    "embedding_size",
    "hidden_size",
    "num_hidden_layers",
    "num_hidden_groups",
    "num_attention_heads",
    "intermediate_size",
    "inner_group_num",
    "max_position_embeddings",
    "type_vocab_size",
    "initializer_range",
)


def prepare(config, weights, question, form, compiled, threads):
    """Makes a model with our weights, on a GPU if there is one: a Prepared.

    Args:
        config: AlbertConfig.
        weights: str or Path. File of NumPy with the weights of an AlbertEncoder, by name.
        question: Question.
        form: str. "float32"; "autocast" to bfloat16; or "converted" to bfloat16 as a whole.
        compiled: bool. Whether `torch.compile` is used.
        threads: int.
    """
    import torch

    torch.set_num_threads(threads)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = _build_model(config, weights).to(device)
    if form == "converted":
        model = model.to(torch.bfloat16)
    module = _pooled(model)
    if compiled:
        module = torch.compile(module)
    inputs = [torch.from_numpy(values) for values in question.inputs().values()]
    autocast = form == "autocast"

    def run():
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=autocast):
            answer = module(*(values.to(device) for values in inputs))
            return answer.float().cpu().numpy()

    dtype = "float32" if form == "float32" else "bfloat16"
    facts = {
        "input": "ids",
        "difference": difference(run(), question, dtype),
        "device": str(device),
        "versions": {name: version(name) for name in ("torch", "transformers")},
    }
    return Prepared(run, facts)


def write_onnx(path, config, weights, question):
    """Writes the model as an ONNX file with free batch and sequence axes.

    Args:
        path: str or Path.
        config: AlbertConfig.
        weights: str or Path. File of NumPy with the weights of an AlbertEncoder, by name.
        question: Question. Any one: the model runs once on it to be recorded.
    """
    import torch

    model = _build_model(config, weights)
    inputs = {name: torch.from_numpy(values) for name, values in question.inputs().items()}
    with torch.inference_mode():
        torch.onnx.export(
            _pooled(model),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=["pooled_output"],
            dynamic_axes={name: {0: "batch", 1: "sequence"} for name in inputs},
            opset_version=17,
            dynamo=False,
        )


def state_of(weights):
    """Names and turns our weights as `AlbertModel` has them.

    Args:
        weights: dict of str to array. Name -> values of each weight of an AlbertEncoder.

    Returns:
        dict of str to array.
    """
    return {
        _their_name(name): np.ascontiguousarray(values.T if name.endswith("/kernel") else values)
        for name, values in weights.items()
    }


def _their_name(name):
    scope, _, part = name.rpartition("/")
    if part in _TABLES:
        return f"embeddings.{part}.weight"
    if scope in _LAYERS:
        return f"{_LAYERS[scope]}.{_PARTS[part]}"
    group, inner, layer = re.fullmatch(_BLOCK, scope).groups()
    block = f"encoder.albert_layer_groups.{group}.albert_layers.{inner}"
    return f"{block}.{_BLOCK_LAYERS[layer]}.{_PARTS[part]}"


def _build_model(config, weights):
    import torch
    import transformers

    model = transformers.AlbertModel(transformers.AlbertConfig(**_arguments(config))).eval()
    with np.load(weights) as values:
        state = state_of(values)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    return model


def _arguments(config):
    if config.sharing != "all" or config.hidden_act not in _ACTIVATIONS:
        raise InputError(
            'AlbertModel of transformers needs `sharing` "all" and an activation of '
            f"{sorted(_ACTIVATIONS)}. Received: {config.sharing}, {config.hidden_act}."
        )
    if config.embedding_size == config.hidden_size:
        raise InputError(
            "AlbertModel of transformers needs an `embedding_size` other than `hidden_size`. "
            f"Received: {config.hidden_size} for both."
        )
    return {name: getattr(config, name) for name in _SAME_NAMES} | {
        "hidden_act": _ACTIVATIONS[config.hidden_act],
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }


def _pooled(model):
    """Makes a module of a model that gives the pooled output alone."""
    import torch

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).pooler_output

    return Pooled()
