"""The losses between student and teacher agree with NumPy."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.distillation.losses import cosine_distances, soft_target_sums

RNG = np.random.default_rng(0)
LOGITS, TEACHER = (RNG.normal(size=(2, 3, 7), scale=3).astype(np.float32) for _ in range(2))
BIAS = RNG.normal(size=7).astype(np.float32)
WEIGHTS = np.array([[1, 1, 0], [1, 0, 0]], np.float32)


def softmax(values):
    powers = np.exp(values - values.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_soft_targets_are_the_divergence_times_the_squared_temperature(temperature):
    found = soft_target_sums(LOGITS, BIAS, TEACHER, WEIGHTS, temperature)
    teacher, student = softmax(TEACHER / temperature), softmax((LOGITS + BIAS) / temperature)
    divergences = (teacher * np.log(teacher / student)).sum(-1)
    expected = temperature**2 * (WEIGHTS * divergences).sum()
    np.testing.assert_allclose(found.loss, expected, rtol=1e-5)
    assert found.weight == 3
    agrees = TEACHER.argmax(-1) == (LOGITS + BIAS).argmax(-1)
    assert found.correct == (WEIGHTS * agrees).sum()


def test_the_squared_temperature_keeps_the_size_of_the_gradients():
    def slope(temperature):
        logits = tf.constant(LOGITS * 0.01)
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = soft_target_sums(logits, 0.0, TEACHER * 0.01, WEIGHTS, temperature).loss
        return np.abs(tape.gradient(loss, logits)).sum()

    assert slope(8.0) == pytest.approx(slope(1.0), rel=0.02)


def test_top_pieces_are_a_distribution_of_their_own():
    values, pieces = tf.math.top_k(TEACHER, 3)
    found = soft_target_sums(LOGITS, BIAS, values, WEIGHTS, 2.0, pieces)
    teacher, student = softmax(values.numpy() / 2), softmax((LOGITS + BIAS) / 2)
    chosen = np.take_along_axis(student, pieces.numpy(), -1)
    divergences = (teacher * np.log(teacher / chosen)).sum(-1)
    np.testing.assert_allclose(found.loss, 4 * (WEIGHTS * divergences).sum(), rtol=1e-5)
    whole = soft_target_sums(LOGITS, BIAS, TEACHER, WEIGHTS, 2.0)
    assert found.correct == whole.correct
    everything = tf.math.top_k(TEACHER, 7)
    found = soft_target_sums(LOGITS, BIAS, everything.values, WEIGHTS, 2.0, everything.indices)
    np.testing.assert_allclose(found.loss, whole.loss, rtol=1e-5)


def test_a_student_that_is_its_teacher_has_no_loss():
    found = soft_target_sums(TEACHER, 0.0, TEACHER, WEIGHTS, 2.0)
    assert abs(float(found.loss)) < 1e-5 and found.correct == 3


def test_the_cosine_is_that_of_the_hidden_states():
    ours, theirs = LOGITS, TEACHER
    cosines = (ours * theirs).sum(-1) / np.linalg.norm(ours, axis=-1)
    cosines /= np.linalg.norm(theirs, axis=-1)
    np.testing.assert_allclose(cosine_distances(ours, theirs), 1 - cosines, rtol=1e-5)
