import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.models.encoder import AlbertEncoder
from tests.albert_keras import numpy_albert

EQUAL = AlbertConfig(
    vocab_size=50,
    embedding_size=8,
    hidden_size=8,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
)
ALWAYS = EQUAL.replace(embedding_projection="always")
NAMES = [f"bert/encoder/embedding_hidden_mapping_in/{part}:0" for part in ("kernel", "bias")]
INPUTS = {
    "input_ids": np.array([[2, 7, 9, 3, 0]]),
    "input_mask": np.array([[1, 1, 1, 1, 0]]),
    "segment_ids": np.array([[0, 0, 1, 1, 0]]),
}


def projections(config):
    return [w.name for w in AlbertEncoder(config).weights if "mapping_in" in w.name]


def test_equal_sizes_are_projected_only_where_it_is_asked_for():
    assert projections(EQUAL) == []
    assert projections(ALWAYS) == NAMES
    assert not EQUAL.projects_embeddings and ALWAYS.projects_embeddings


def test_outputs_are_those_of_numpy():
    encoder = AlbertEncoder(ALWAYS, dtype="float32")
    numpy_albert.scramble(encoder)
    weights = numpy_albert.weights_by_name(encoder)
    sizes = dict(ALWAYS) | {"embedding_size": None}  # what makes the oracle project
    sequence, pooled, _ = numpy_albert.encode(weights, sizes, **INPUTS)
    outputs = encoder(INPUTS)
    np.testing.assert_allclose(outputs["sequence_output"], sequence, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)
