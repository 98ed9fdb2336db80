"""Encoders to and from KerasNLP's `AlbertBackbone`, by a table of layers.

KerasNLP is imported inside the functions: nobody else has to load it. Written for version 0.12.1,
whose blocks keep their parts in private attributes and whose weight names are not unique.
"""

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.models.encoder import AlbertEncoder
from data_pipeline.errors import InputError

#: Layer of the backbone -> first part of our weights' names.
LAYERS = {
    "embeddings_layer_norm": "bert/embeddings/LayerNorm",
    "embeddings_projection": "bert/encoder/embedding_hidden_mapping_in",
    "pooled_dense": "bert/pooler/dense",
}
#: Table of the backbone -> our weight.
TABLES = {
    "token_embedding.embeddings": "bert/embeddings/word_embeddings",
    "segment_embedding.embeddings": "bert/embeddings/token_type_embeddings",
    "position_embedding.position_embeddings": "bert/embeddings/position_embeddings",
}
#: Layer of one of the backbone's blocks -> what follows `inner_group_K/` in our names.
BLOCK_LAYERS = {
    "_self_attention_layer._query_dense": "attention_1/self/query",
    "_self_attention_layer._key_dense": "attention_1/self/key",
    "_self_attention_layer._value_dense": "attention_1/self/value",
    "_self_attention_layer._output_dense": "attention_1/output/dense",
    "_self_attention_layer_norm": "LayerNorm",
    "_feedforward_intermediate_dense": "ffn_1/intermediate/dense",
    "_feedforward_output_dense": "ffn_1/intermediate/output/dense",
    "_feedforward_layer_norm": "LayerNorm_1",
}
#: The backbone's argument -> our field.
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


def from_keras_nlp(backbone):
    """Returns an encoder with the weights of a KerasNLP backbone.

    Args:
        backbone: keras_nlp.models.AlbertBackbone.

    Returns:
        AlbertEncoder, with the backbone's dtype policy and dropout.

    Raises:
        InputError: If the backbone is of another kind, or projects from E to the same size.
    """
    import keras_nlp

    if not isinstance(backbone, keras_nlp.models.AlbertBackbone):
        raise InputError(
            f"`backbone` should be an AlbertBackbone. Received: {type(backbone).__name__}."
        )
    sizes = {ours: getattr(backbone, theirs) for theirs, ours in ARGUMENTS.items()}
    config = AlbertConfig(
        hidden_act="gelu",
        hidden_dropout_prob=backbone.dropout,
        attention_probs_dropout_prob=backbone.dropout,
        **sizes,
    )
    _require_projection(config)
    encoder = AlbertEncoder(config, dtype=backbone.token_embedding.dtype_policy)
    for ours, theirs in _weight_pairs(encoder, backbone):
        ours.assign(np.reshape(theirs.numpy(), ours.shape))
    return encoder


def to_keras_nlp(encoder):
    """Returns a KerasNLP backbone with the weights of an encoder.

    Args:
        encoder: AlbertEncoder.

    Returns:
        keras_nlp.models.AlbertBackbone, with the encoder's dtype policy.

    Raises:
        InputError: If the backbone cannot express the encoder: another activation than "gelu",
            other sharing than "all", E = H, two different dropouts, or groups of unequal depth.
    """
    import keras_nlp

    config = encoder.config
    _require_expressible(config)
    backbone = keras_nlp.models.AlbertBackbone(
        dropout=config.hidden_dropout_prob,
        dtype=encoder.dtype_policy,
        **{theirs: getattr(config, ours) for theirs, ours in ARGUMENTS.items()},
    )
    for ours, theirs in _weight_pairs(encoder, backbone):
        theirs.assign(np.reshape(ours.numpy(), theirs.shape))
    return backbone


def _require_expressible(config):
    _require_projection(config)
    dropouts = (config.hidden_dropout_prob, config.attention_probs_dropout_prob)
    rules = (
        ("sharing", config.sharing == "all", 'should be "all"', config.sharing),
        ("hidden_act", config.hidden_act == "gelu", 'should be "gelu"', config.hidden_act),
        (
            "hidden_dropout_prob",
            dropouts[0] == dropouts[1],
            "should equal `attention_probs_dropout_prob`",
            dropouts,
        ),
        (
            "num_hidden_layers",
            config.num_hidden_layers % config.num_hidden_groups == 0,
            "should be a multiple of `num_hidden_groups`",
            (config.num_hidden_layers, config.num_hidden_groups),
        ),
    )
    problems = [
        f"`{field}` {says}. Received: {received!r}."
        for field, holds, says, received in rules
        if not holds
    ]
    if problems:
        raise InputError(f"KerasNLP's AlbertBackbone cannot express this: {' '.join(problems)}")


def _require_projection(config):
    if config.embedding_size == config.hidden_size:
        raise InputError(
            "`embedding_size` should differ from `hidden_size`: KerasNLP's AlbertBackbone always "
            "projects, our encoder and the reference do not where the two are equal. "
            f"Received: {config.hidden_size} for both."
        )


def _weight_pairs(encoder, backbone):
    """Returns pairs (our weight, theirs); they differ in shape only, heads being an axis there."""
    theirs = {name: _attribute(backbone, path) for path, name in TABLES.items()}
    layers = {name: _attribute(backbone, path) for path, name in LAYERS.items()}
    for group, blocks in enumerate(backbone.transformer_layers):
        for inner, block in enumerate(blocks):
            scope = f"bert/encoder/transformer/group_{group}/inner_group_{inner}"
            for path, name in BLOCK_LAYERS.items():
                layers[f"{scope}/{name}"] = _attribute(block, path)
    for name, layer in layers.items():
        for weight in layer.weights:
            theirs[f"{name}/{weight.name.rsplit('/', 1)[-1].removesuffix(':0')}"] = weight
    ours = {weight.name.removesuffix(":0"): weight for weight in encoder.weights}
    if ours.keys() != theirs.keys():
        difference = sorted(ours.keys() ^ theirs.keys())
        raise InputError(
            "The encoder and KerasNLP's AlbertBackbone should have the same weights. "
            f"Received, on one side only: {', '.join(difference)}."
        )
    return [(ours[name], theirs[name]) for name in ours]


def _attribute(thing, path):
    for name in path.split("."):
        thing = getattr(thing, name)
    return thing
