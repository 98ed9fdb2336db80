import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.kernels import compiled_kernels
from albert_keras.optimization.lamb import AdamW, Lamb

EXCLUDED = ["LayerNorm", "layer_norm", "bias"]


def numpy_updates(weights, gradients, lr, decayed, adapted):
    """LAMB by the book of google-research/albert; `adapted=False` makes it AdamW."""
    w = np.asarray(weights, np.float64)
    m = v = np.zeros_like(w)
    for g in gradients:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        u = m / (np.sqrt(v) + 1e-6) + (0.01 * w if decayed else 0)
        w_norm, u_norm = np.linalg.norm(w), np.linalg.norm(u)
        ratio = w_norm / u_norm if adapted and w_norm > 0 and u_norm > 0 else 1.0
        w = w - ratio * lr * u
    return w


def random_gradients(shape, steps, seed):
    return np.random.default_rng(seed).normal(size=(steps, *shape)).astype("float32")


@pytest.mark.parametrize(
    "optimizer, after_1, after_2",
    [
        (Lamb, [2.9642576, 4.03496399], [2.92856559, 4.07007605]),
        (AdamW, [2.96808722, 4.03121778], [2.925304, 4.07330582]),
    ],
)
def test_two_steps_have_the_references_values(optimizer, after_1, after_2):
    weights, optimizer = tf.Variable([3.0, 4.0], name="kernel"), optimizer(0.01)
    for expected in (after_1, after_2):
        optimizer.apply_gradients([(tf.constant([0.1, -0.2]), weights)])
        np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("optimizer, is_lamb", [(Lamb, True), (AdamW, False)])
@pytest.mark.parametrize(
    "name, is_excluded",
    [
        ("albert/attention/query/kernel", False),
        ("albert/attention/query/bias", True),
        ("bert/embeddings/LayerNorm/beta", True),
    ],
)
def test_five_random_steps_agree_with_numpy(optimizer, is_lamb, name, is_excluded):
    start = np.random.default_rng(1).normal(size=(5, 4)).astype("float32")
    gradients = random_gradients((5, 4), steps=5, seed=2)
    weights = tf.Variable(start, name=name)
    optimizer = optimizer(0.02, global_clipnorm=None)
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weights)])
    used = not is_excluded
    expected = numpy_updates(start, gradients, 0.02, decayed=used, adapted=used and is_lamb)
    np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-6)


def test_other_clipping_replaces_the_default_and_no_decay_is_zero():
    optimizer = Lamb(0.1, clipnorm=2.0, weight_decay=None)
    assert (optimizer.clipnorm, optimizer.global_clipnorm) == (2.0, None)
    assert Lamb(0.1, clipvalue=2.0).global_clipnorm is None
    weights = tf.Variable([1.0, 2.0])
    optimizer.apply_gradients([(tf.zeros(2), weights)])
    np.testing.assert_array_equal(weights, [1.0, 2.0])


def test_the_trust_ratio_may_be_left_out_where_decay_is_not():
    gradients = random_gradients((3,), steps=3, seed=3)
    weights = tf.Variable([1.0, -2.0, 3.0], name="head/kernel")
    optimizer = Lamb(
        0.1,
        exclude_from_weight_decay=["bias"],
        exclude_from_layer_adaptation=["head"],
        global_clipnorm=None,
    )
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weights)])
    expected = numpy_updates([1.0, -2.0, 3.0], gradients, 0.1, decayed=True, adapted=False)
    np.testing.assert_allclose(weights, expected, rtol=1e-5)


@pytest.mark.parametrize("optimizer", [Lamb, AdamW])
def test_sparse_gradients_equal_the_same_dense_ones_in_all_rows(optimizer):
    tables = [tf.Variable(tf.ones([4, 2]), name="table") for _ in range(2)]
    optimizers = [optimizer(0.1, global_clipnorm=None) for _ in range(2)]
    values = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for rows in ([0, 2, 0], [1, 1, 3]):
        sparse = tf.IndexedSlices(values, tf.constant(rows), dense_shape=tf.constant([4, 2]))
        optimizers[0].apply_gradients([(sparse, tables[0])])
        optimizers[1].apply_gradients([(tf.convert_to_tensor(sparse), tables[1])])
    np.testing.assert_allclose(tables[0], tables[1], rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_it_works_inside_a_graph_and_under_xla(jit_compile):
    table, optimizer = tf.Variable(tf.ones([4, 2]), name="table"), Lamb(0.1)

    @tf.function(jit_compile=jit_compile)
    def step(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, table), table)])

    step(tf.constant([0, 0, 1]))
    gradient = np.array([[4.0, 4.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    expected = numpy_updates(np.ones([4, 2]), [gradient], 0.1, decayed=True, adapted=True)
    np.testing.assert_allclose(table, expected, rtol=1e-5)


def updated(optimizer, gradients, name="kernel"):
    """Returns weights, first and second moments after some updates."""
    weights = tf.Variable(random_gradients((5, 4), steps=1, seed=5)[0], name=name)
    for gradient in gradients:
        optimizer.apply_gradients([(tf.constant(gradient), weights)])
    return [weights.numpy(), *(optimizer.moments_of(weights)[slot].numpy() for slot in "mv")]


@pytest.mark.parametrize("optimizer", [Lamb, AdamW])
@pytest.mark.parametrize("name", ["kernel", "bias"])
def test_updates_by_compiled_kernels_equal_plain_ones(optimizer, name):
    gradients = random_gradients((5, 4), steps=2, seed=6)
    arguments = {"weight_decay": 0.02, "exclude_from_weight_decay": EXCLUDED}
    expected = updated(optimizer(0.1, **arguments), gradients, name)
    with compiled_kernels():
        found = updated(optimizer(0.1, **arguments), gradients, name)
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)


@pytest.mark.parametrize("optimizer", [Lamb, AdamW])
@pytest.mark.parametrize("wrong", [np.nan, 1e30])
@pytest.mark.parametrize("is_compiled", [False, True], ids=["plain", "compiled"])
def test_a_gradient_that_is_not_finite_leaves_weights_and_moments(optimizer, wrong, is_compiled):
    gradients = random_gradients((5, 4), steps=2, seed=6)
    gradients[1, 2, 3] = wrong  # the square of 1e30 is not finite
    with compiled_kernels(is_compiled):
        before = updated(optimizer(0.1), gradients[:1])
        after = updated(optimizer(0.1), gradients)
    for left, right in zip(before, after, strict=True):
        np.testing.assert_array_equal(left, right)
