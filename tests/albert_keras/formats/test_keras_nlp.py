import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats.keras_nlp import from_keras_nlp, to_keras_nlp
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
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
        ({"num_hidden_groups": 3}, "num_hidden_groups"),
    ],
)
def test_what_keras_nlp_cannot_express_is_refused(changes, named):
    with pytest.raises(InputError, match=f"`{named}`"):
        to_keras_nlp(AlbertEncoder(CONFIG.replace(**changes)))


def test_something_else_than_a_backbone_is_refused(encoder):
    with pytest.raises(InputError, match="AlbertBackbone"):
        from_keras_nlp(encoder)


@pytest.mark.parametrize("length", [1, 512])
def test_shortest_and_longest_sequences_give_the_same_outputs(length):
    encoder = AlbertEncoder(CONFIG.replace(max_position_embeddings=512), dtype="float32")
    numpy_albert.scramble(encoder)
    ids = np.random.default_rng(0).integers(0, 50, (2, length))
    mask = np.stack([np.arange(length) < length // 2 + 1, np.arange(length) >= length // 2])
    mask = mask.astype(np.int32)  # padding right, padding left
    zeros = np.zeros_like(ids)
    ours = encoder({"input_ids": ids, "input_mask": mask, "segment_ids": zeros})
    theirs = to_keras_nlp(encoder)({"token_ids": ids, "padding_mask": mask, "segment_ids": zeros})
    np.testing.assert_allclose(ours["sequence_output"], theirs["sequence_output"], atol=1e-5)


@pytest.mark.parametrize("projection", ["auto", "always"])
def test_a_model_as_wide_as_its_embeddings_comes_back_as_it_was(projection):
    config = CONFIG.replace(embedding_size=8, embedding_projection=projection)
    encoder = AlbertEncoder(config, dtype="float32")
    numpy_albert.scramble(encoder)
    backbone = to_keras_nlp(encoder)
    assert_same_outputs(encoder, backbone)
    returned = from_keras_nlp(backbone)
    assert returned.config == config
    assert all(map(np.array_equal, returned.get_weights(), encoder.get_weights()))


def assert_same_scores(pretraining, masked_lm):
    masked_lm.masked_lm_head._intermediate_layer_norm.epsilon = 1e-12  # theirs has 1e-5
    ids = np.random.default_rng(0).integers(0, 50, (3, 7))
    positions = np.array([[1, 2], [4, 3], [6, 0]])
    mask, segments = np.array(MASKS), np.zeros_like(ids)
    ours = pretraining(
        {
            "input_ids": ids,
            "input_mask": mask,
            "segment_ids": segments,
            "masked_lm_positions": positions,
        }
    )["masked_lm_logits"]
    theirs = masked_lm(
        {
            "token_ids": ids,
            "padding_mask": mask,
            "segment_ids": segments,
            "mask_positions": positions,
        }
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_the_masked_lm_model_scores_the_same_and_comes_back_without_its_other_head(caplog):
    pretraining = AlbertForPretraining(CONFIG, dtype="float32")
    numpy_albert.scramble(pretraining)
    masked_lm = to_keras_nlp(pretraining)
    assert "sentence-order head" in caplog.text
    assert_same_scores(pretraining, masked_lm)
    returned = from_keras_nlp(masked_lm)
    assert returned.sentence_order_head is None
    weights = numpy_albert.weights_by_name(returned)
    originals = numpy_albert.weights_by_name(pretraining)
    assert set(originals) - set(weights) == {
        "cls/seq_relationship/output_weights",
        "cls/seq_relationship/output_bias",
    }
    assert all(np.array_equal(weights[name], originals[name]) for name in weights)


def test_a_number_that_is_none_is_refused_by_name(encoder):
    broken = to_keras_nlp(encoder)
    bias = broken.pooled_dense.bias
    bias.assign(np.full(bias.shape, np.nan))
    with pytest.raises(InputError, match="pooled_dense/vars/1"):
        from_keras_nlp(broken)
