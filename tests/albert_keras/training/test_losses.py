import math

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.training.loop.step import TrainingStep
from albert_keras.training.losses import masked_lm_sums, sentence_order_sums

LN2, LN4 = math.log(2), math.log(4)

#: Chances 1/4, 3/4 and 1/2, 1/2 in two sequences of two predictions each.
LOGITS = tf.math.log([[[0.25, 0.75], [0.5, 0.5]], [[0.25, 0.75], [0.75, 0.25]]])  # [2, 2, 2]
IDS = tf.constant([[0, 0], [1, 0]])
WEIGHTS = tf.constant([[1.0, 1.0], [1.0, 0.0]])


def masked_lm_loss(*arguments):
    """Returns the loss of a step whose batch has these predictions."""
    sums = masked_lm_sums(*arguments)
    step = TrainingStep(tf.keras.Model(), {"masked_lm": 1.0})
    return step._loss(tf.stack([tf.stack(sums)]), tf.stack([sums.weight]))


def test_masked_lm_sums_count_each_real_prediction_once():
    sums = masked_lm_sums(LOGITS, IDS, WEIGHTS)
    assert math.isclose(sums.loss, LN4 + LN2 + math.log(4 / 3), rel_tol=1e-6)
    assert float(sums.weight) == 3.0
    assert float(sums.correct) == 2.0  # of the tie the first; the padding would be right too


def test_masked_lm_loss_is_the_average_with_the_references_guard():
    expected = (LN4 + LN2 + math.log(4 / 3)) / (3 + 1e-5)
    assert math.isclose(masked_lm_loss(LOGITS, IDS, WEIGHTS), expected, rel_tol=1e-6)


def test_a_batch_without_predictions_has_loss_zero_and_no_gradient():
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        loss = masked_lm_loss(logits, IDS, tf.zeros([2, 2]))
    assert float(loss) == 0.0
    np.testing.assert_array_equal(tape.gradient(loss, logits), np.zeros([2, 2, 2]))


def test_sums_of_parts_add_up_to_the_sums_of_the_whole():
    whole = masked_lm_sums(LOGITS, IDS, WEIGHTS)
    parts = [masked_lm_sums(LOGITS[i : i + 1], IDS[i : i + 1], WEIGHTS[i : i + 1]) for i in (0, 1)]
    for total, *shares in zip(whole, *parts, strict=True):
        assert math.isclose(total, sum(shares), rel_tol=1e-6)


def test_sentence_order_sums_leave_out_instances_without_weight():
    logits = tf.math.log([[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]])
    sums = sentence_order_sums(logits, tf.constant([1, 1, 0]), tf.constant([1.0, 1.0, 0.0]))
    assert math.isclose(sums.loss, math.log(4 / 3) + LN2, rel_tol=1e-6)
    assert (float(sums.weight), float(sums.correct)) == (2.0, 1.0)


def test_an_untrained_model_is_at_chance():
    logits = tf.zeros([1, 2, 30_000])
    loss = masked_lm_loss(logits, tf.constant([[5, 29_999]]), tf.ones([1, 2]))
    assert math.isclose(loss, math.log(30_000), rel_tol=1e-4)


def test_everything_is_float32_even_for_bfloat16_logits_and_integer_weights():
    logits = tf.cast(tf.constant([[[0.0, 8.0]]]), tf.bfloat16)
    sums = masked_lm_sums(logits, tf.constant([[1]], tf.int64), tf.constant([[1]]))
    assert {part.dtype for part in sums} == {tf.float32}
    assert math.isclose(sums.loss, math.log1p(math.exp(-8)), rel_tol=1e-4)


def test_shapes_that_would_broadcast_in_silence_are_refused():
    with pytest.raises(ValueError, match=r"labels must .* \(2, 1\)"):
        masked_lm_sums(LOGITS, IDS[:, :1], WEIGHTS)
    with pytest.raises(ValueError, match=r"weights must .* \(3, 1\)"):
        sentence_order_sums(tf.zeros([3, 2]), tf.zeros([3], tf.int32), tf.ones([3, 1]))
