"""KerasNLP's ALBERT models in memory, to and from ours. For its folders see `keras_nlp_preset.py`.

With TensorFlow 2.16 and later, KerasNLP is its successor KerasHub: its models are of Keras 3, ours
of Keras 2, in one process. The library is imported inside the functions, so that nobody else has to
load it. Written for KerasNLP 0.12.1 and KerasHub 0.32.0, whose blocks keep their parts in private
attributes and whose weight names are not unique.

Source: `AlbertBackbone`, `AlbertMaskedLM`, `TransformerEncoder` and `MaskedLMHead` of KerasNLP
0.12.1.
"""

import logging
from pathlib import Path

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.model_weights import (
    PROJECTION,
    check_expressible,
    encoder_shapes,
    head_shapes,
    with_identity_projection,
    without_identity_projection,
)
from albert_keras.formats.tensor_table import (
    Row,
    check_heads,
    dense_rows,
    expand,
    norm_rows,
    read_by_table,
    shapes_with_heads,
    write_by_table,
)
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError
from data_pipeline.tensorflow_line import needs_tf_keras

logger = logging.getLogger(__name__)

#: The backbone's argument -> our field. `dropout` sets both of ours.
ARGUMENTS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "num_groups": "num_hidden_groups",
    "num_inner_repetitions": "inner_group_num",
    "embedding_dim": "embedding_size",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
_OURS = "bert/encoder/transformer/group_{g}/inner_group_{k}"
_THEIRS = "transformer_layers/{g}/{k}"
_ATTENTION = f"{_THEIRS}/_self_attention_layer"
_NAMES = ("/vars/0", "/vars/1")
# A weight of theirs is named by the path to it: attributes from `AlbertBackbone` (for the head
# from `AlbertMaskedLM`), then its index among the weights of its layer.
_BACKBONE = (
    Row("bert/embeddings/word_embeddings", "token_embedding/vars/0"),
    Row("bert/embeddings/token_type_embeddings", "segment_embedding/vars/0"),
    Row("bert/embeddings/position_embeddings", "position_embedding/vars/0"),
    *norm_rows("bert/embeddings/LayerNorm", "embeddings_layer_norm", _NAMES),
    *dense_rows(PROJECTION, "embeddings_projection", _NAMES),
    *(
        row
        for part in ("query", "key", "value")
        for row in dense_rows(
            f"{_OURS}/attention_1/self/{part}",
            f"{_ATTENTION}/_{part}_dense",
            _NAMES,
            "heads",
            "heads",
        )
    ),
    *dense_rows(
        f"{_OURS}/attention_1/output/dense", f"{_ATTENTION}/_output_dense", _NAMES, "heads"
    ),
    *norm_rows(f"{_OURS}/LayerNorm", f"{_THEIRS}/_self_attention_layer_norm", _NAMES),
    *dense_rows(
        f"{_OURS}/ffn_1/intermediate/dense", f"{_THEIRS}/_feedforward_intermediate_dense", _NAMES
    ),
    *dense_rows(
        f"{_OURS}/ffn_1/intermediate/output/dense", f"{_THEIRS}/_feedforward_output_dense", _NAMES
    ),
    *norm_rows(f"{_OURS}/LayerNorm_1", f"{_THEIRS}/_feedforward_layer_norm", _NAMES),
    *dense_rows("bert/pooler/dense", "pooled_dense", _NAMES),
)
_MASKED_LM = (
    Row("cls/predictions/output_bias", "masked_lm_head/vars/0"),
    *dense_rows("cls/predictions/transform/dense", "masked_lm_head/_intermediate_dense", _NAMES),
    *norm_rows(
        "cls/predictions/transform/LayerNorm", "masked_lm_head/_intermediate_layer_norm", _NAMES
    ),
)


def from_keras_nlp(model) -> AlbertEncoder | AlbertForPretraining:
    """Returns a model of ours with the weights, dtype policy and dropout of a KerasNLP model.

    KerasNLP's masked-LM head adds 1e-5 to the variance it divides by, where ours adds 1e-12: its
    scores differ by a fraction of about 5e-6 / variance.

    Args:
        model: keras_nlp.models.AlbertBackbone or keras_nlp.models.AlbertMaskedLM. The latter
            becomes an AlbertForPretraining without a sentence-order head.

    Raises:
        InputError: If the model is of another kind, or a weight is not finite.
    """
    models = _library().models
    has_head = isinstance(model, models.AlbertMaskedLM)
    backbone = model.backbone if has_head else model
    if not isinstance(backbone, models.AlbertBackbone):
        raise InputError(
            "`model` must be an AlbertBackbone or AlbertMaskedLM of KerasNLP. "
            f"Received: {type(model).__name__}."
        )
    config = config_of({name: getattr(backbone, name) for name in (*ARGUMENTS, "dropout")})
    rows = rows_of(config, has_head)
    theirs = {row.theirs: _weight(model, row.theirs).numpy() for row in rows}
    config, tensors = from_theirs(config, rows, theirs, type(model).__name__)
    policy = backbone.token_embedding.dtype_policy.name
    if has_head:
        ours = AlbertForPretraining(config, sentence_head=False, dtype=policy)
    else:
        ours = AlbertEncoder(config, dtype=policy)
    for weight in ours.weights:
        weight.assign(tensors[weight.name.removesuffix(":0")])
    return ours


def to_keras_nlp(model: AlbertEncoder | AlbertForPretraining):
    """Returns a KerasNLP model with the weights and the dtype policy of one of ours.

    For the scores of the head see `from_keras_nlp`.

    Returns:
        keras_nlp.models.AlbertBackbone, or keras_nlp.models.AlbertMaskedLM without the
        sentence-order head, which it does not have (a warning is logged).

    Raises:
        InputError: If it is another model, or the backbone cannot express it: an activation other
            than "gelu", sharing other than "all", two different dropouts, or groups of unequal
            depth.
    """
    if not isinstance(model, AlbertEncoder | AlbertForPretraining):
        raise InputError(
            "`model` must be an AlbertEncoder or AlbertForPretraining. "
            f"Received: {type(model).__name__}."
        )
    has_head = isinstance(model, AlbertForPretraining)
    encoder = model.encoder if has_head else model
    arguments = arguments_of(encoder.config)
    models = _library().models
    theirs = models.AlbertBackbone(dtype=encoder.dtype_policy.name, **arguments)
    theirs = models.AlbertMaskedLM(theirs) if has_head else theirs
    if has_head and model.sentence_order_head is not None:
        logger.warning("KerasNLP has no sentence-order head: it is dropped.")
    rows = rows_of(encoder.config, has_head)
    names = {row.ours for row in rows}
    weights = {weight.name.removesuffix(":0"): weight for weight in model.weights}
    tensors = {name: weight.numpy() for name, weight in weights.items() if name in names}
    for name, array in to_theirs(encoder.config, rows, tensors).items():
        _weight(theirs, name).assign(array)
    return theirs


def config_of(arguments: dict) -> AlbertConfig:
    """Returns the configuration of a backbone's arguments."""
    return AlbertConfig(
        hidden_act="gelu",
        hidden_dropout_prob=arguments["dropout"],
        attention_probs_dropout_prob=arguments["dropout"],
        **{ours: arguments[theirs] for theirs, ours in ARGUMENTS.items()},
    )


def arguments_of(config: AlbertConfig) -> dict:
    """Returns the backbone's arguments; InputError if it cannot express the model."""
    dropouts = (config.hidden_dropout_prob, config.attention_probs_dropout_prob)
    depths = (config.num_hidden_layers, config.num_hidden_groups)
    is_even = depths[0] % depths[1] == 0
    same_dropout = "equal to `attention_probs_dropout_prob`"
    rules = (
        ("sharing", config.sharing == "all", '"all"'),
        ("hidden_act", config.hidden_act == "gelu", '"gelu"'),
        ("hidden_dropout_prob", dropouts[0] == dropouts[1], same_dropout, dropouts),
        ("num_hidden_layers", is_even, "a multiple of `num_hidden_groups`", depths),
    )
    check_expressible("KerasNLP's AlbertBackbone", config, rules)
    arguments = {theirs: getattr(config, ours) for theirs, ours in ARGUMENTS.items()}
    return arguments | {"dropout": config.hidden_dropout_prob}


def rows_of(config: AlbertConfig, masked_lm: bool) -> list[Row]:
    """Returns the rows of a model that KerasNLP can express, with or without the head."""
    table = _BACKBONE + _MASKED_LM if masked_lm else _BACKBONE
    return expand(table, config.num_hidden_groups, config.inner_group_num)


def from_theirs(
    config: AlbertConfig, rows: list[Row], theirs: dict[str, np.ndarray], source: str | Path
) -> tuple[AlbertConfig, dict[str, np.ndarray]]:
    """Converts all of KerasNLP's weights into ours, in float32.

    KerasNLP always projects the embeddings. Where E = H, a projection that changes nothing is
    dropped; `to_theirs` adds one where our model has none.

    Raises:
        InputError: With all weights that are missing, unexpected or of another shape.
    """
    projected = config.replace(embedding_projection="always")
    shapes = encoder_shapes(projected) | head_shapes(projected, {row.ours: None for row in rows})
    check_heads(rows, theirs, shapes, config, source)
    tensors = read_by_table(rows, theirs, shapes, source)
    if config.embedding_size != config.hidden_size:
        return config, tensors
    tensors, config = without_identity_projection(tensors, projected)
    return config, tensors


def to_theirs(config: AlbertConfig, rows: list[Row], tensors: dict) -> dict[str, np.ndarray]:
    """Converts all of our weights into KerasNLP's, in float32."""
    if not config.projects_embeddings:
        tensors = with_identity_projection(tensors, config)
    shapes = {name: np.shape(array) for name, array in tensors.items()}
    return write_by_table(rows, tensors, shapes_with_heads(rows, shapes, config))


def _library():
    """Returns KerasNLP, or KerasHub where that is installed in its place."""
    if needs_tf_keras():
        import keras_hub

        return keras_hub
    import keras_nlp

    return keras_nlp


def _weight(model, path):
    """Returns the variable of a KerasNLP model that a table calls `path`."""
    *attributes, _, index = path.split("/")
    part = model if attributes[0] == "masked_lm_head" else getattr(model, "backbone", model)
    for name in attributes:
        part = part[int(name)] if name.isdecimal() else getattr(part, name)
    return part.weights[int(index)]
