"""A small model, as weights and as a folder of our format."""

import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import own
from albert_keras.formats.detection import CONVERSION_RECORD
from albert_keras.formats.model_weights import ModelWeights, encoder_shapes, head_shapes

SHAPE = AlbertConfig(
    vocab_size=307,
    embedding_size=16,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=48,
    max_position_embeddings=24,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
#: The last tensor of each head: `head_shapes` adds the others.
_HEADS = {
    "masked_lm": ("cls/predictions/output_bias", 307),
    "sentence_order": ("cls/seq_relationship/output_bias", 2),
    "classifier": ("output_bias", 3),
}


@pytest.fixture(scope="session")
def random_weights():
    """Returns a function of a shape, heads and files that gives ModelWeights, all random."""

    def make(config=SHAPE, heads=("masked_lm", "sentence_order"), files=None, seed=0):
        ends = {name: np.zeros(size) for name, size in map(_HEADS.get, heads)}
        shapes = encoder_shapes(config) | head_shapes(config, ends)
        draw = np.random.default_rng(seed)
        tensors = {
            name: draw.normal(name.endswith("gamma"), 0.1, shape).astype(np.float32)
            for name, shape in shapes.items()
        }
        return ModelWeights(config, tensors, "random", files or {})

    return make


@pytest.fixture(scope="session")
def own_folder(random_weights, tokenizer_files, tmp_path_factory):
    """Returns a function that writes weights as a folder of ours and gives its path."""

    def write(*args, files=None, **kwargs):
        folder = tmp_path_factory.mktemp("own") / "model"
        folder.mkdir()
        own.write(random_weights(*args, files=files or tokenizer_files, **kwargs), folder)
        (folder / CONVERSION_RECORD).write_text('{"format": "albert-keras"}')
        return folder

    return write


@pytest.fixture(scope="session")
def small_model(own_folder):
    """Returns the folder of a small model of ours; tests that change it copy it first."""
    return own_folder()
