"""The losses of similarity as computed by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.similarity import TEMPERATURE
from tests.albert_keras.tasks.small_tasks import task_sums


def vectors_of(*cosines):
    """Returns pairs of vectors with these cosines: float32 [B, 2, 2]."""
    first = np.tile([1.0, 0.0], (len(cosines), 1))
    second = np.array([[cosine, math.sqrt(1 - cosine**2)] for cosine in cosines])
    return tf.constant(np.stack([first, second], axis=1), tf.float32)


def loss_of(vectors, weights=None, **features):
    weights = [1.0] * len(vectors) if weights is None else weights
    features = {"example_weights": tf.constant(weights, tf.float32)} | features
    sums = task_sums("similarity", {"vectors": vectors}, features)
    assert float(sums.correct) == 0
    return float(sums.loss), float(sums.weight)


def test_scores_cost_the_pairs_in_the_wrong_order_most():
    # Only differences of pairs with different scores count: 0 > 1, 0 > 2.
    labels = tf.constant([5.0, 1.0, 1.0])
    cosines = (0.50, 0.55, 0.40)
    terms = math.exp(0.05 / TEMPERATURE) + math.exp(-0.10 / TEMPERATURE)
    loss, weight = loss_of(vectors_of(*cosines), labels=labels)
    assert (loss, weight) == (pytest.approx(3 * math.log(1 + terms), rel=1e-4), 3)
    # Any scores in the same order are the same.
    assert loss_of(vectors_of(*cosines), labels=labels * 9 - 3)[0] == pytest.approx(loss)


def test_equal_scores_cost_nothing():
    assert loss_of(vectors_of(0.1, 0.9), labels=tf.constant([2.0, 2.0]))[0] == 0


def test_pairs_cost_the_surprise_of_the_right_partner():
    draw = np.random.default_rng(0).normal(size=(4, 2, 3))
    vectors = draw / np.linalg.norm(draw, axis=-1, keepdims=True)
    logits = vectors[:, 0] @ vectors[:, 1].T / 0.05
    expected = np.log(np.exp(logits).sum(axis=1)) - np.diag(logits)
    found, weight = loss_of(tf.constant(vectors, tf.float32))
    assert (found, weight) == (pytest.approx(expected.sum(), rel=1e-5), 4)


@pytest.mark.parametrize("features", [{}, {"labels": tf.constant([3.0, 1.0, 2.0])}])
def test_a_row_that_fills_up_the_batch_changes_nothing(features):
    found = [
        loss_of(vectors_of(0.3, 0.5, cosine), [1.0, 1.0, 0.0], **features)[0]
        for cosine in (0.1, 0.9)
    ]
    part = {name: values[:2] for name, values in features.items()}
    alone = loss_of(vectors_of(0.3, 0.5), **part)[0]
    np.testing.assert_allclose(found, alone, rtol=1e-6)
