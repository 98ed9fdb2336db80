"""Checkpoints are whole, named and strict."""

import pytest
import tensorflow as tf

from albert_keras import AlbertConfig, AlbertForPretraining
from albert_keras.training.checkpoints import CheckpointFolder, load_weights, weight_names
from data_pipeline.errors import InputError

CONFIG = AlbertConfig(
    vocab_size=50, hidden_size=16, num_attention_heads=2, intermediate_size=32, embedding_size=8
)


@pytest.fixture
def saved(tmp_path):
    model = AlbertForPretraining(CONFIG, seed=1)
    optimizer = tf.keras.optimizers.legacy.Adam()
    optimizer._create_all_weights(model.trainable_variables)
    folder = CheckpointFolder(tmp_path / "checkpoints", keep=2)
    for step in (3, 6, 9):
        folder.save(step, model, optimizer)
    return folder, model


def test_the_newest_ones_are_kept(saved):
    folder, _ = saved
    assert folder.steps() == [6, 9] and folder.latest() == 9
    assert sorted(path.name for path in folder.path.iterdir()) == ["step-00000006", "step-00000009"]


def test_weights_come_back_bit_for_bit(saved):
    folder, model = saved
    other = AlbertForPretraining(CONFIG, seed=2)
    folder.restore(9, other)
    for before, after in zip(model.weights, other.weights, strict=True):
        assert before.name == after.name and bool(tf.reduce_all(before == after))


def test_an_unfinished_checkpoint_does_not_count(saved):
    folder, _ = saved
    (folder.path / ".step-00000012.tmp-1").mkdir()
    assert folder.latest() == 9


def test_no_checkpoint_is_an_error_that_says_so(tmp_path):
    with pytest.raises(InputError, match="holds no checkpoint yet"):
        CheckpointFolder(tmp_path).latest()


def test_missing_and_misshapen_tensors_are_all_named_and_nothing_is_loaded(saved):
    folder, _ = saved
    other = AlbertForPretraining(CONFIG.replace(hidden_size=32, sharing="none"), seed=2)
    before = [weight.numpy() for weight in other.weights]
    with pytest.raises(InputError) as caught:
        load_weights(folder.prefix(9), weight_names(other))
    assert "pooler/dense/kernel: [32, 32] wanted, [16, 16] found" in str(caught.value)
    assert "group_11/inner_group_0/LayerNorm/beta: [32] wanted, nothing found" in str(caught.value)
    assert all(
        (weight.numpy() == old).all() for weight, old in zip(other.weights, before, strict=True)
    )


def test_a_damaged_checkpoint_is_refused(saved):
    folder, model = saved
    data = folder.path / "step-00000009" / "model.ckpt.data-00000-of-00001"
    damaged = bytearray(data.read_bytes())
    damaged[::97] = bytes(byte ^ 1 for byte in damaged[::97])
    data.write_bytes(damaged)
    with pytest.raises(InputError, match="cannot be read"):
        folder.restore(9, model)
