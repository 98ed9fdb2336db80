"""The cross-entropy against TensorFlow's own."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.layers.cross_entropy import sparse_cross_entropy


def random(*shape, seed):
    return tf.random.stateless_normal(shape, seed=(0, seed))


def tensorflows(scores, bias, labels):
    logits = tf.cast(scores, tf.float64) + tf.cast(bias, tf.float64)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return losses, tf.argmax(logits, axis=-1, output_type=labels.dtype) == labels


def values_and_gradients(function, scores, bias, labels):
    """Returns losses, right answers and two gradients as float64 arrays."""
    weights = tf.range(scores.shape[0], dtype=tf.float32) - 1.5  # one of them is negative
    with tf.GradientTape() as tape:
        tape.watch([scores, bias])
        losses, is_right = function(scores, bias, labels)
        loss = tf.reduce_sum(tf.cast(losses, tf.float32) * weights)
    gradients = tape.gradient(loss, [scores, bias])
    return [tf.cast(value, tf.float64).numpy() for value in (losses, is_right, *gradients)]


@pytest.mark.parametrize("labels_dtype", ["int32", "int64"])
def test_losses_right_answers_and_gradients_are_tensorflows(labels_dtype, kernels):
    scores, bias = 3 * random(5, 7, seed=1), random(7, seed=2)
    best = tf.argmax(scores + bias, axis=-1, output_type=labels_dtype)
    labels = tf.concat([best[:2], tf.constant([0, 6, 3], labels_dtype)], axis=0)
    ours = values_and_gradients(sparse_cross_entropy, scores, bias, labels)
    expected = values_and_gradients(tensorflows, scores, bias, labels)
    assert 2 <= ours[1].sum() < 5
    for found, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=2e-6)


def test_losses_of_bfloat16_scores_are_exact_and_gradients_rounded(kernels):
    scores, bias = tf.cast(3 * random(5, 7, seed=1), tf.bfloat16), random(7, seed=2)
    labels = tf.constant([0, 6, 3, 3, 1])
    losses, is_right = sparse_cross_entropy(scores, bias, labels)
    assert losses.dtype == is_right.dtype == tf.float32
    losses, is_right, d_scores, d_bias = values_and_gradients(
        sparse_cross_entropy, scores, bias, labels
    )
    expected = values_and_gradients(tensorflows, scores, bias, labels)
    np.testing.assert_allclose(losses, expected[0], rtol=1e-6, atol=2e-6)
    np.testing.assert_array_equal(is_right, expected[1])
    np.testing.assert_allclose(d_scores, expected[2], rtol=2**-8, atol=1e-6)
    # Five rounded addends; processors without bfloat16 also round their sum, which is below 4.
    np.testing.assert_allclose(d_bias, expected[3], atol=2**-5)


def test_of_several_highest_the_first_one_is_the_answer(kernels):
    scores = tf.constant([[1.0, 4.0, 4.0, 0.0]] * 4)
    # The bias makes the last of the others' equal: it counts as much as the scores.
    bias, labels = tf.constant([0.0, 0.0, 0.0, 4.0]), tf.constant([0, 1, 2, 3])
    np.testing.assert_array_equal(sparse_cross_entropy(scores, bias, labels)[1], [0, 1, 0, 0])
