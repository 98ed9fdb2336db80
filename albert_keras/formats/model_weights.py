"""The tensors of a model, with the names and shapes of google-research/albert."""

import json
import re
from collections.abc import Iterable

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.models.sharing import layer_plan
from data_pipeline.errors import InputError

PROJECTION = "bert/encoder/embedding_hidden_mapping_in"
POOLER = "bert/pooler/dense"
TYPES = "bert/embeddings/token_type_embeddings"
POSITIONS = "bert/embeddings/position_embeddings"
#: Defaults of BERT in google-research/bert and in transformers, for keys that may be missing.
BERT_DEFAULTS = {
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
}


def _layer(name, axes):
    """Returns the tensors of a dense layer, or for a single axis those of a normalization."""
    if len(axes) == 1:
        return {f"{name}/beta": axes, f"{name}/gamma": axes}
    return {f"{name}/kernel": axes, f"{name}/bias": axes[-1]}


#: Tensor -> its axes, by letter, see `_shapes`.
_EMBEDDINGS = {"bert/embeddings/word_embeddings": "VE", **_layer("bert/embeddings/LayerNorm", "E")}
#: Layers of a block: what follows `inner_group_K/`, and the axes.
BLOCK = {
    "query": ("attention_1/self/query", "HH"),
    "key": ("attention_1/self/key", "HH"),
    "value": ("attention_1/self/value", "HH"),
    "output": ("attention_1/output/dense", "HH"),
    "attention_norm": ("LayerNorm", "H"),
    "wide": ("ffn_1/intermediate/dense", "HI"),
    "narrow": ("ffn_1/intermediate/output/dense", "IH"),
    "last_norm": ("LayerNorm_1", "H"),
}
_FEED_FORWARD = ("wide", "narrow", "last_norm")
_HEADS = {
    "masked_lm": {
        **_layer("cls/predictions/transform/dense", "HE"),
        **_layer("cls/predictions/transform/LayerNorm", "E"),
        "cls/predictions/output_bias": "V",
    },
    "sentence_order": {
        "cls/seq_relationship/output_weights": "2H",
        "cls/seq_relationship/output_bias": "2",
    },
    "classifier": {"output_weights": "CH", "output_bias": "C"},
    "spans": {"cls/squad/output_weights": "2H", "cls/squad/output_bias": "2"},
    "spans_or_none": {
        **_layer("start_logits/dense", "H1"),
        **_layer("end_logits/dense_0", "DH"),
        **_layer("end_logits/LayerNorm", "H"),
        **_layer("end_logits/dense_1", "H1"),
        **_layer("answer_class/dense_0", "DH"),
        "answer_class/dense_1/kernel": "H1",  # has no bias
    },
}


#: Names of the parts a model may have besides the encoder -> how their tensors' names start.
HEADS = {
    head: tuple(dict.fromkeys(re.match(r"cls/\w+/|\w+/?", name)[0] for name in tensors))
    for head, tensors in _HEADS.items()
}


def heads_of(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the heads in `HEADS` that have at least one tensor among these names."""
    return tuple(
        head for head, starts in HEADS.items() if any(name.startswith(starts) for name in names)
    )


def blank(part: str, config: AlbertConfig) -> dict[str, np.ndarray]:
    """Returns the tensors of a part that changes nothing, for formats that cannot leave it out.

    The `part` is PROJECTION of the embeddings, POOLER or TYPES, a table of one segment type.
    """
    size = config.hidden_size
    if part == TYPES:
        return {TYPES: np.zeros((1, config.embedding_size), np.float32)}
    kernel = np.eye(size) if part == PROJECTION else np.zeros((size, size))
    arrays = {"kernel": kernel, "bias": np.zeros(size)}
    return {f"{part}/{name}": array.astype(np.float32) for name, array in arrays.items()}


def without_blank(part: str, config: AlbertConfig, tensors: dict) -> dict[str, np.ndarray]:
    """Returns the tensors without a part that changes nothing, exactly, if they have one."""
    nothing = blank(part, config)
    if all(np.array_equal(tensors.get(name), array) for name, array in nothing.items()):
        return {name: array for name, array in tensors.items() if name not in nothing}
    return tensors


def encoder_shapes(config: AlbertConfig, names: Iterable[str] = ()) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the encoder's tensors, with any sharing.

    A pooler on demand is among them if it is among the `names` of a model's tensors.
    """
    axes = dict(_EMBEDDINGS)
    if config.position_rows:
        axes[POSITIONS] = "PE"
    if config.type_vocab_size:
        axes[TYPES] = "TE"
    if config.projects_embeddings:
        axes |= _layer(PROJECTION, "EH")
    for use in layer_plan(config):
        for layer, (name, letters) in BLOCK.items():
            block = use.feed_forward if layer in _FEED_FORWARD else use.attention
            axes |= _layer(f"bert/encoder/transformer/{block.scope}/{name}", letters)
    if config.pooler == "always" or any(name.startswith("bert/pooler/") for name in names):
        axes |= _layer(POOLER, "HH")
    return _shapes(axes, config)


def head_shapes(config: AlbertConfig, tensors) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of all tensors of the heads that have at least one tensor.

    `tensors` maps the reference's names of the whole model to arrays.
    """
    # The length of the classifier's bias, which no transposition can hide.
    first = next((name for name in ("output_bias", "output_weights") if name in tensors), None)
    num_classes = tensors[first].shape[0] if first and tensors[first].ndim else 0
    axes = {}
    for head in heads_of(tensors):
        axes |= _HEADS[head]
    return _shapes(axes, config, num_classes)


def _shapes(axes, config, num_classes=0):
    sizes = {
        "V": config.vocab_size,
        "E": config.embedding_size,
        "H": config.hidden_size,
        "D": 2 * config.hidden_size,
        "I": config.intermediate_size,
        "P": config.position_rows,
        "T": config.type_vocab_size,
        "C": num_classes,
        "1": 1,
        "2": 2,
    }
    return {name: tuple(sizes[letter] for letter in letters) for name, letters in axes.items()}


#: Values of fields that only RoBERTa, DistilBERT and models with rotary positions have otherwise.
_PLAIN = {
    "position_embedding": "absolute",
    "position_offset": 0,
    "layer_norm_epsilon": 1e-12,
    "pooler": "always",
    "pooler_activation": "tanh",
}


def check_expressible(format_name: str, config: AlbertConfig, allowed: dict, plain: bool = True):
    """Raises InputError with all fields of a model whose value a format cannot store.

    `allowed` has the value of a field, or a tuple of values. `plain` adds those of formats that can
    store neither models without segment types or pooler, nor rotary positions, an offset of
    positions or, unless it is in `allowed`, another epsilon.
    """
    problems = []
    for field, values in ((_PLAIN if plain else {}) | allowed).items():
        values = values if isinstance(values, tuple) else (values,)
        if getattr(config, field) not in values:
            wanted = " or ".join(map(json.dumps, values))
            problems.append(f"`{field}` must be {wanted}. Received: {getattr(config, field)!r}.")
    if plain and not config.type_vocab_size:
        problems.append("`type_vocab_size` must be at least 1. Received: 0.")
    if problems:
        raise InputError(f"{format_name} cannot express this model: {' '.join(problems)}")


def albert_sharing(config: AlbertConfig) -> dict[str, tuple[str, ...]]:
    """Returns the sharing that google-research/albert and ALBERT in transformers can express.

    InputError if their code would not run each group.
    """
    if not groups_are_rounded_alike(config):
        groups = config.num_hidden_groups if config.sharing == "all" else config.num_hidden_layers
        raise InputError(
            "`num_hidden_groups` must be another number: with this one, a rounding error makes "
            f"the code of ALBERT skip a group. Received: {groups}."
        )
    has_group_each = config.num_hidden_groups == config.num_hidden_layers
    return {"sharing": ("all", "none", *(("attention", "ffn") if has_group_each else ()))}


def groups_are_rounded_alike(config: AlbertConfig) -> bool:
    """Returns whether code that divides floats runs the same group at each depth.

    google-research/albert and transformers do, in two ways. This fails for a few numbers of layers
    and groups only.
    """
    layers = config.num_hidden_layers
    groups = layers if config.sharing == "none" else config.num_hidden_groups
    return all(
        int(depth / layers * groups) == int(depth / (layers / groups)) == depth * groups // layers
        for depth in range(layers)
    )
