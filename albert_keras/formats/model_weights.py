"""Which models another format can store, and parts that change nothing."""

import json

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.shape import PROJECTION, TYPES
from data_pipeline.errors import InputError

#: Defaults of BERT in google-research/bert and in transformers, for keys that may be missing.
BERT_DEFAULTS = {
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "initializer_range": 0.02,
}


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
