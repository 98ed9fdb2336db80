import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.kernels import compiled_kernels
from albert_keras.optimization.lamb import AdamW
from albert_keras.optimization.muon import Muon, orthogonalize


def random_matrix(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def matrix(value, name="transformer/group_0/attention/kernel"):
    return tf.Variable(value, name=name)


@pytest.mark.parametrize("shape", [(16, 16), (16, 48), (48, 16)])
def test_orthogonalize_keeps_singular_vectors_and_evens_out_singular_values(shape):
    u, _, vh = np.linalg.svd(random_matrix(shape), full_matrices=False)
    given = (u * np.geomspace(0.05, 1, 16)) @ vh
    result = orthogonalize(tf.constant(given, tf.float32)).numpy()
    in_their_basis = u.T @ result @ vh.T
    values = np.diag(in_their_basis)
    np.testing.assert_allclose(in_their_basis, np.diag(values), atol=1e-4)
    assert values.min() > 0.6 and values.max() < 1.3


def test_bfloat16_products_are_close_to_those_of_float32():
    given = tf.constant(random_matrix((32, 64)))
    exact = orthogonalize(given)
    rounded = orthogonalize(given, dtype="bfloat16")
    assert rounded.dtype == tf.float32
    cosine = tf.reduce_sum(exact * rounded) / (tf.norm(exact) * tf.norm(rounded))
    assert cosine > 0.99


def test_two_updates_of_a_matrix_are_those_of_the_definition():
    start, gradients = random_matrix((8, 24)), [random_matrix((8, 24), seed) for seed in (1, 2)]
    weights, optimizer = matrix(start), Muon(0.01, momentum=0.9, weight_decay=0.1)
    optimizer.global_clipnorm = None
    expected, momentum = start.astype("float64"), 0
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weights)])
        momentum = 0.9 * momentum + gradient
        direction = orthogonalize(tf.constant(gradient + 0.9 * momentum, tf.float32)).numpy()
        update = 0.2 * np.sqrt(24) * direction
        expected = expected - 0.01 * (update + 0.1 * expected)
    np.testing.assert_allclose(weights, expected, atol=1e-5)


def test_the_size_of_an_update_does_not_depend_on_the_gradients_scale():
    changes = []
    for scale in (1e-3, 1e3):
        weights = matrix(np.zeros([8, 24], "float32"))
        Muon(0.01).apply_gradients([(scale * random_matrix((8, 24)), weights)])
        changes.append(weights.numpy())
    np.testing.assert_allclose(*changes, rtol=1e-4, atol=1e-7)
    assert np.sqrt(np.mean(changes[0] ** 2)) == pytest.approx(0.01 * 0.2, rel=0.2)


@pytest.mark.parametrize(
    "name, shape",
    [
        ("bert/embeddings/word_embeddings", (8, 4)),
        ("bert/pooler/dense/kernel", (4, 4)),
        ("transformer/group_0/kernel_of_rank_3/kernel", (2, 2, 2)),
    ],
)
def test_all_other_variables_are_updated_by_adamw(name, shape):
    results = []
    for build in (Muon, AdamW):
        variable, optimizer = tf.Variable(random_matrix(shape), name=name), build(0.01)
        for seed in (1, 2):
            optimizer.apply_gradients([(random_matrix(shape, seed), variable)])
        results.append(variable.numpy())
    np.testing.assert_array_equal(*results)


def test_matrices_have_no_second_moment():
    weights, table, optimizer = matrix(np.ones([2, 2])), tf.Variable([1.0], name="bias"), Muon()
    optimizer.build([weights, table])
    assert list(optimizer.moments_of(weights)) == ["m"]
    assert list(optimizer.moments_of(table)) == ["m", "v"]
    moments = [slot for slot in optimizer.variables if slot.shape != ()]
    assert len(moments) == 1 + 2


@pytest.mark.parametrize("compiles", [False, True])
def test_a_gradient_that_is_not_finite_changes_nothing(compiles):
    weights, optimizer = matrix(random_matrix((4, 4))), Muon(0.1)

    @tf.function
    def apply(gradient):
        with compiled_kernels(compiles):
            optimizer.apply_gradients([(gradient, weights)])

    apply(tf.constant(random_matrix((4, 4), 1)))
    before = weights.numpy(), optimizer.moments_of(weights)["m"].numpy()
    apply(tf.fill([4, 4], tf.cast(np.nan, tf.float32)))
    after = weights.numpy(), optimizer.moments_of(weights)["m"].numpy()
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_configuration_is_complete():
    optimizer = Muon(
        0.02, momentum=0.8, newton_schulz_iterations=3, matrices=["kernel"], weight_decay=0.2
    )
    copy = Muon.from_config(optimizer.get_config())
    assert copy.get_config() == optimizer.get_config()
    assert copy.momentum == 0.8 and copy.newton_schulz_iterations == 3
