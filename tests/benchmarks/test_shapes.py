"""Shapes from the words of the command line."""

import pytest

from data_pipeline.errors import InputError
from tests.benchmarks.shapes import make_shape


def test_layers_and_width_make_a_model():
    shape = make_shape("6x256", batch_size=32, max_seq_length=128)
    config = shape.config
    assert (config.num_hidden_layers, config.hidden_size) == (6, 256)
    assert (config.num_attention_heads, config.intermediate_size) == (4, 1024)
    assert (config.embedding_size, config.vocab_size) == (128, 30_000)
    assert (shape.tokens, shape.predictions) == (4096, 19)


@pytest.mark.parametrize("length, predictions", [(1, 1), (32, 4), (128, 19), (512, 76)])
def test_fifteen_percent_are_predicted_and_at_least_one(length, predictions):
    assert make_shape("6x256", max_seq_length=length).predictions == predictions


@pytest.mark.parametrize("name", ["albert-base-v1", "bert-base"])
def test_named_models_are_without_dropout_and_of_one_vocabulary(name):
    config = make_shape(name).config
    assert (config.num_hidden_layers, config.hidden_size, config.vocab_size) == (12, 768, 30_000)
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0


@pytest.mark.parametrize(
    "model, says",
    [
        ("albert-bse", "Did you mean `albert-base`"),
        ("6*256", "did you mean `6x256`"),
        ("6x250", "did you mean `6x256`"),
        ("0x256", "did you mean `1x256`"),
        ("elephant", "Expected one of: albert-base,"),
    ],
)
def test_a_wrong_model_is_corrected(model, says):
    with pytest.raises(InputError, match="Received: `") as caught:
        make_shape(model)
    assert says in str(caught.value)
