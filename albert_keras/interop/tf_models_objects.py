"""Objects of tensorflow/models' ALBERT as they stand in its checkpoints.

TensorFlow restores by the names of attributes, from object to object, and wants objects without
variables, too.
"""

import tensorflow as tf

#: What the names of the masked-LM head's variables begin with.
HEAD = "bert/cls/predictions"
#: Layers of their encoder in order: what their variables' names begin with, "" without variables.
_LAYERS = (
    "",
    "word_embeddings",
    "",
    "position_embedding",
    "type_embeddings",
    "",
    "embeddings/layer_norm",
    "",
    "embedding_projection",
    "",
    "",
    "transformer",
    "",
    "pooler_transform",
)
#: Attributes of their block, likewise; where they are objects again, a dict.
_BLOCK_ATTRIBUTES = {
    "_attention_layer": {
        "_query_dense": "transformer/self_attention/query",
        "_key_dense": "transformer/self_attention/key",
        "_value_dense": "transformer/self_attention/value",
        "_softmax": "",
        "_dropout_layer": "",
        "_output_dense": "transformer/self_attention/attention_output",
    },
    "_attention_dropout": "",
    "_attention_layer_norm": "transformer/self_attention_layer_norm",
    "_intermediate_dense": "transformer/intermediate",
    "_intermediate_activation_layer": "",
    "_inner_dropout_layer": "",
    "_output_dense": "transformer/output",
    "_output_dropout": "",
    "_output_layer_norm": "transformer/output_layer_norm",
}


def encoder_objects(variables):
    """Returns objects as Keras tracks those of the encoder.

    Args:
        variables: dict of full name -> tf.Variable.

    Returns:
        tf.Module, for `tf.train.Checkpoint(encoder=...)`.
    """
    encoder = tf.Module()
    with_weights = 0
    projects = "embedding_projection/kernel" in variables
    layers = [name for name in _LAYERS if name != "embedding_projection" or projects]
    for number, name in enumerate(layers):
        is_block = name == "transformer"
        layer = _objects(_BLOCK_ATTRIBUTES, variables) if is_block else _leaf(name, variables)
        if name:
            setattr(encoder, f"layer_with_weights-{with_weights}", layer)
            with_weights += 1
        setattr(encoder, f"layer-{number}", layer)
    return encoder


def masked_lm_objects(variables):
    """As `encoder_objects`, of the masked-LM head, for `tf.train.Checkpoint(masked_lm=...)`."""
    head = tf.Module()
    head.embedding_table = variables["word_embeddings/embeddings"]
    head.dense = _leaf(f"{HEAD}/transform/dense", variables)
    head.layer_norm = _leaf(f"{HEAD}/transform/LayerNorm", variables)
    # The weight's name, by which theirs is saved, and where the layer keeps it.
    for attribute in ("output_bias/bias", "bias"):
        setattr(head, attribute, variables[f"{HEAD}/output_bias/bias"])
    return head


def _objects(attributes, variables):
    parent = tf.Module()
    for attribute, name in attributes.items():
        make = _objects if isinstance(name, dict) else _leaf
        setattr(parent, attribute, make(name, variables))
    return parent


def _leaf(name, variables):
    """Returns an object whose attributes are the variables called `name`/..."""
    leaf = tf.Module()
    for full_name, variable in variables.items():
        place, _, attribute = full_name.rpartition("/")
        if place == name:
            setattr(leaf, attribute, variable)
    return leaf
