import importlib.util

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.optimization import lamb, lamb_base
from data_pipeline.tensorflow_line import needs_tf_keras


def three_steps(optimizer, size):
    """Returns a variable after three updates with gradients from a seed."""
    draw = np.random.default_rng(3)
    weight = tf.Variable(draw.normal(size=size).astype("float32"), name="kernel")
    for _ in range(3):
        gradient = tf.constant(draw.normal(size=size).astype("float32"))
        optimizer.apply_gradients([(gradient, weight)])
    return weight


@pytest.fixture
def plain(monkeypatch):
    """Returns the module `lamb` on the base for TensorFlow without tensorflow-addons."""
    monkeypatch.setattr(lamb_base, "needs_tf_keras", lambda: True)
    # The classes of the copy would be registered under the names of the originals.
    monkeypatch.setattr(keras.saving, "register_keras_serializable", lambda **_: lambda cls: cls)
    spec = importlib.util.spec_from_file_location("plain_lamb", lamb.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert issubclass(module.Lamb, lamb_base.PlainLamb)
    return module


@pytest.mark.skipif(needs_tf_keras(), reason="there is no tensorflow-addons for this TensorFlow")
@pytest.mark.parametrize("name", ["Lamb", "AdamW"])
def test_both_bases_give_the_same_bits(plain, tmp_path, name):
    arguments = {"learning_rate": 0.01, "exclude_from_weight_decay": ["bias"], "clipnorm": 1.0}
    theirs, ours = getattr(lamb, name)(**arguments), getattr(plain, name)(**arguments)
    assert not isinstance(theirs, lamb_base.PlainLamb)
    weight, other = three_steps(theirs, 1000), three_steps(ours, 1000)
    np.testing.assert_array_equal(weight, other)
    assert ours.get_config() == theirs.get_config()

    path = tf.train.Checkpoint(weight=weight, optimizer=theirs).write(str(tmp_path / "theirs"))
    restored = getattr(plain, name)(**arguments)
    target = tf.Variable(tf.zeros(1000), name="kernel")
    status = tf.train.Checkpoint(weight=target, optimizer=restored).read(path)
    restored.apply_gradients([(tf.ones(1000), target)])
    status.assert_consumed()
    ours.apply_gradients([(tf.ones(1000), other)])
    np.testing.assert_array_equal(target, other)


@pytest.mark.parametrize(
    "optimizer, expected",
    [
        ("Lamb", "0x1.0c53d2p+1 -0x1.47dd1ap+1 0x1.d89bb4p-2 -0x1.04db84p-1"),
        ("AdamW", "0x1.142aaep+1 -0x1.495846p+1 0x1.047b5cp-1 -0x1.c7533ap-2"),
    ],
)
def test_every_tensorflow_gives_the_bits_of_2_15_1(optimizer, expected):
    weight = three_steps(getattr(lamb, optimizer)(0.01), 4)
    assert list(map(float, weight)) == list(map(float.fromhex, expected.split()))
