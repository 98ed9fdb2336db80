"""Which weight of KerasNLP's ALBERT is which of ours: data, and what both ways have in common.

A weight of theirs is called by the way to it: attributes from `AlbertBackbone` (the head's from
`AlbertMaskedLM`), then its place among the weights of the layer it belongs to. Files call the
layers of the model otherwise, see `rows_of_file`.

Source: `AlbertBackbone`, `AlbertMaskedLM`, `TransformerEncoder` and `MaskedLMHead` of KerasNLP
0.12.1.
"""

import numpy as np

from albert_keras.interop.reference_shapes import encoder_shapes, head_shapes
from albert_keras.interop.tensor_table import Row, expand, read_by_table, write_by_table
from data_pipeline.errors import InputError

PROJECTION = "bert/encoder/embedding_hidden_mapping_in"
_OURS = "bert/encoder/transformer/group_{g}/inner_group_{k}"
_THEIRS = "transformer_layers/{g}/{k}"
_ATTENTION = f"{_THEIRS}/_self_attention_layer"


def _dense(ours, theirs, layout="same"):
    return (
        Row(f"{ours}/kernel", f"{theirs}/vars/0", layout),
        Row(f"{ours}/bias", f"{theirs}/vars/1"),
    )


def _norm(ours, theirs):
    return Row(f"{ours}/gamma", f"{theirs}/vars/0"), Row(f"{ours}/beta", f"{theirs}/vars/1")


def _heads(part):
    ours, theirs = f"{_OURS}/attention_1/self/{part}", f"{_ATTENTION}/_{part}_dense/vars"
    return Row(f"{ours}/kernel", f"{theirs}/0", "heads"), Row(
        f"{ours}/bias", f"{theirs}/1", "heads"
    )


BACKBONE = (
    Row("bert/embeddings/word_embeddings", "token_embedding/vars/0"),
    Row("bert/embeddings/token_type_embeddings", "segment_embedding/vars/0"),
    Row("bert/embeddings/position_embeddings", "position_embedding/vars/0"),
    *_norm("bert/embeddings/LayerNorm", "embeddings_layer_norm"),
    *_dense(PROJECTION, "embeddings_projection"),
    *_heads("query"),
    *_heads("key"),
    *_heads("value"),
    *_dense(f"{_OURS}/attention_1/output/dense", f"{_ATTENTION}/_output_dense", "heads"),
    *_norm(f"{_OURS}/LayerNorm", f"{_THEIRS}/_self_attention_layer_norm"),
    *_dense(f"{_OURS}/ffn_1/intermediate/dense", f"{_THEIRS}/_feedforward_intermediate_dense"),
    *_dense(f"{_OURS}/ffn_1/intermediate/output/dense", f"{_THEIRS}/_feedforward_output_dense"),
    *_norm(f"{_OURS}/LayerNorm_1", f"{_THEIRS}/_feedforward_layer_norm"),
    *_dense("bert/pooler/dense", "pooled_dense"),
)
MASKED_LM = (
    Row("cls/predictions/output_bias", "masked_lm_head/vars/0"),
    *_dense("cls/predictions/transform/dense", "masked_lm_head/_intermediate_dense"),
    *_norm("cls/predictions/transform/LayerNorm", "masked_lm_head/_intermediate_layer_norm"),
)
#: Attribute -> layer in a file of weights: its class in snake case, counted from the second on.
_FILE_LAYERS = {
    "token_embedding": "reversible_embedding",
    "segment_embedding": "embedding",
    "position_embedding": "position_embedding",
    "embeddings_layer_norm": "layer_normalization",
    "embeddings_projection": "dense",
    "pooled_dense": "dense_1",
    "masked_lm_head": "masked_lm_head",
}


def rows_of(config, masked_lm):
    """Returns the rows of a model: list of Row.

    Args:
        config: AlbertConfig. One that KerasNLP can express.
        masked_lm: bool. Whether it has the head.
    """
    table = BACKBONE + MASKED_LM if masked_lm else BACKBONE
    return expand(table, config.num_hidden_groups, config.inner_group_num)


def rows_of_file(config, masked_lm):
    """As `rows_of`, with the names that the weights have in a preset's HDF5 file."""
    rows = []
    for row in rows_of(config, masked_lm):
        layer, rest = row.theirs.split("/", 1)
        if layer == "transformer_layers":
            group, inner, rest = rest.split("/", 2)
            number = int(group) * config.inner_group_num + int(inner)
            layer = f"transformer_encoder_{number}" if number else "transformer_encoder"
        else:
            layer = _FILE_LAYERS[layer]
        rows.append(row._replace(theirs=f"layers/{layer}/{rest}"))
    return rows


def from_theirs(config, rows, theirs, source):
    """Brings KerasNLP's weights into ours.

    KerasNLP projects the embeddings always. Where E = H, a projection that changes nothing is what
    `to_theirs` puts in place of none, and is left out again.

    Args:
        config: AlbertConfig. Made from the arguments.
        rows: list of Row. All of the model.
        theirs: dict of name -> array. All of the model.
        source: str. What the user calls it.

    Returns:
        (AlbertConfig, dict of name -> float32 array).

    Raises:
        InputError: With all weights that are missing, not wanted or of another shape.
    """
    always = config.replace(embedding_projection="always")
    shapes = encoder_shapes(always) | head_shapes(always, {row.ours: None for row in rows})
    check_heads(rows, theirs, shapes, config, source)
    tensors = read_by_table(rows, theirs, shapes, source)
    if config.embedding_size != config.hidden_size:
        return config, tensors
    kernel, bias = (tensors[f"{PROJECTION}/{part}"] for part in ("kernel", "bias"))
    if bias.any() or not np.array_equal(kernel, np.eye(len(bias))):
        return always, tensors
    return config, {n: array for n, array in tensors.items() if not n.startswith(PROJECTION)}


def to_theirs(config, rows, tensors):
    """Brings our weights into KerasNLP's.

    Args:
        config: AlbertConfig.
        rows: list of Row. All of the model.
        tensors: dict of name -> array. Exactly what the rows want, but for a projection.

    Returns:
        dict of their name -> float32 array.
    """
    if not config.projects_embeddings:
        size = config.hidden_size
        tensors = tensors | {
            f"{PROJECTION}/kernel": np.eye(size, dtype=np.float32),
            f"{PROJECTION}/bias": np.zeros(size, np.float32),
        }
    shapes = {name: np.shape(array) for name, array in tensors.items()}
    return write_by_table(rows, tensors, shapes_with_heads(rows, shapes, config))


def shapes_with_heads(rows, shapes, config):
    """Returns the shapes of weights in Keras' `MultiHeadAttention`, where heads are an axis.

    Args:
        rows: iterable of Row.
        shapes: dict of our name -> shape.
        config: AlbertConfig.

    Returns:
        dict of their name -> shape, for rows whose layout is "heads".
    """
    heads = config.num_attention_heads
    sizes = (heads, config.hidden_size // heads)
    split = {}
    for row in rows:
        if row.layout == "heads" and row.ours in shapes:
            *first, last = shapes[row.ours]
            is_output = row.ours.endswith("output/dense/kernel")
            split[row.theirs] = (*sizes, last) if is_output else (*first, *sizes)
    return split


def check_heads(rows, theirs, shapes, config, source):
    """Makes sure that heads are as many and as large as they should be.

    The table's reader would take [H, D, A] for [H, A, D].

    Args:
        rows: iterable of Row.
        theirs: mapping of name -> array.
        shapes: dict of our name -> shape.
        config: AlbertConfig.
        source: str. What the user calls it.

    Raises:
        InputError: With all that are not.
    """
    problems = [
        f"{name}: {list(shape)} wanted, {list(np.shape(theirs[name]))} found"
        for name, shape in shapes_with_heads(rows, shapes, config).items()
        if name in theirs and np.shape(theirs[name]) != shape
    ]
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(f"The tensors of `{source}` are not those of the model:\n  {listing}")
