import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.interop.keras_nlp import from_keras_nlp, to_keras_nlp
from albert_keras.models.encoder import AlbertEncoder
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert

CONFIG = AlbertConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=8,
    num_hidden_layers=4,
    num_hidden_groups=2,
    inner_group_num=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
)
MASKS = [[1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1]]


@pytest.fixture(scope="module")
def encoder():
    encoder = AlbertEncoder(CONFIG, dtype="float32")
    numpy_albert.scramble(encoder)
    return encoder


@pytest.fixture(scope="module")
def backbone(encoder):
    return to_keras_nlp(encoder)


def assert_same_outputs(encoder, backbone):
    ids = np.random.default_rng(0).integers(0, 50, (3, 7))
    segments = np.array([[0, 0, 0, 1, 1, 1, 1]] * 3)
    mask = np.array(MASKS)
    ours = encoder({"input_ids": ids, "input_mask": mask, "segment_ids": segments})
    theirs = backbone({"token_ids": ids, "padding_mask": mask, "segment_ids": segments})
    for name in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-5)


def test_our_weights_give_the_same_outputs_in_keras_nlp(encoder, backbone):
    assert_same_outputs(encoder, backbone)


def test_weights_from_keras_nlp_give_the_same_outputs_here(backbone):
    numpy_albert.scramble(backbone, seed=2)
    assert_same_outputs(from_keras_nlp(backbone), backbone)


def test_there_and_back_is_the_same_encoder(encoder):
    returned = from_keras_nlp(to_keras_nlp(encoder))
    assert returned.config == encoder.config
    assert all(map(np.array_equal, returned.get_weights(), encoder.get_weights()))


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"sharing": "attention"}, "sharing"),
        ({"hidden_act": "relu"}, "hidden_act"),
        ({"hidden_act": "gelu_erf"}, "hidden_act"),
        ({"hidden_dropout_prob": 0.1}, "hidden_dropout_prob"),
        ({"embedding_size": 8}, "embedding_size"),
        ({"num_hidden_groups": 3}, "num_hidden_groups"),
    ],
)
def test_what_keras_nlp_cannot_express_is_refused(changes, named):
    with pytest.raises(InputError, match=f"`{named}`"):
        to_keras_nlp(AlbertEncoder(CONFIG.replace(**changes)))


def test_something_else_than_a_backbone_is_refused(encoder):
    with pytest.raises(InputError, match="AlbertBackbone"):
        from_keras_nlp(encoder)
