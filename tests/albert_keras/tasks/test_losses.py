"""Each loss as computed by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.tasks.kinds import KINDS, TAGGING
from tests.albert_keras.tasks.small_tasks import task_counts, task_sums

LN2, LN4 = math.log(2), math.log(4)
#: Chances of three places in three rows, and the weights of the rows.
CHANCES = tf.math.log([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
WEIGHTS = tf.constant([1.0, 1.0, 0.0])


def check(kind, outputs, features, loss, weight, correct):
    features = {"example_weights": WEIGHTS} | features
    sums = task_sums(KINDS[kind], outputs, features)
    np.testing.assert_allclose(sums, [loss, weight, correct], rtol=1e-6)
    assert float(task_counts(KINDS[kind], features)) == weight
    assert {part.dtype for part in sums} == {tf.float32}


@pytest.mark.parametrize("kind, dtype", [("classification", tf.int32), ("choice", tf.int64)])
def test_the_right_class_costs_its_surprise(kind, dtype):
    # Scores are not normalised; the third row would be right and weighs nothing.
    labels = tf.constant([1, 1, 2], dtype)
    check(kind, {"logits": CHANCES + 7}, {"labels": labels}, LN2 + LN4, 2.0, 1.0)


def test_regression_costs_the_squared_error_and_is_never_right():
    outputs = {"logits": tf.constant([[1.5], [4.0], [9.0]])}
    features = {"labels": tf.constant([1.0, 4.0, 0.0])}
    check("regression", outputs, features, 0.25, 2.0, 0.0)


def test_any_of_several_labels_costs_the_mean_of_their_surprises_and_is_right_if_all_are():
    logits = tf.math.log([[3.0, 1 / 3], [3.0, 1.0], [9.0, 9.0]])
    labels = tf.constant([[1, 0], [0, 0], [1, 1]])
    loss = math.log(4 / 3) + (LN4 + LN2) / 2
    check("multi_label", {"logits": logits}, {"labels": labels}, loss, 2.0, 1.0)


def test_several_scores_cost_the_mean_of_their_squared_errors_and_are_never_right():
    outputs = {"logits": tf.constant([[1.5, 2.0], [4.0, 4.0], [9.0, 9.0]])}
    features = {"labels": tf.constant([[1.0, 2.0], [4.0, 1.0], [0.0, 0.0]])}
    check("multi_regression", outputs, features, (0.25 + 9) / 2, 2.0, 0.0)


def test_tagging_counts_each_scored_word_of_rows_that_count():
    logits = tf.stack([CHANCES] * 3)  # [3 rows, 3 places, 3 tags]
    tags = tf.constant([[-1, 0, -1], [1, 1, 2], [0, 0, 0]])
    loss = LN2 + (LN2 + LN4 + LN2)
    check("tagging", {"logits": logits}, {"tag_ids": tags}, loss, 4.0, 3.0)


def test_tagging_without_a_scored_word_has_no_loss_and_no_gradient():
    logits = tf.Variable(tf.stack([CHANCES] * 3))
    features = {"tag_ids": -tf.ones((3, 3), tf.int32), "example_weights": WEIGHTS}
    with tf.GradientTape() as tape:
        sums = task_sums(TAGGING, {"logits": logits}, features)
    assert [float(part) for part in sums] == [0, 0, 0]
    np.testing.assert_array_equal(tape.gradient(sums.loss, logits), np.zeros((3, 3, 3)))


POSITIONS = {"start_positions": tf.constant([1, 0, 2]), "end_positions": tf.constant([1, 1, 2])}


def test_spans_cost_the_mean_of_start_and_end_and_are_right_if_both_are():
    outputs = {"start_logits": CHANCES + 1, "end_logits": CHANCES - 1}
    check("spans", outputs, POSITIONS, (LN2 + LN2) / 2 + (LN2 + LN4) / 2, 2.0, 1.0)


def test_spans_or_none_cost_half_of_start_end_and_no_answer():
    # Chances of no answer: 3/4 where there is none, 1/4 where there is one.
    outputs = {
        "start_log_probs": CHANCES,
        "end_log_probs": CHANCES,
        "null_logits": tf.math.log([3.0, 1 / 3, 5.0]),
    }
    features = POSITIONS | {"is_impossible": tf.constant([1, 0, 0])}
    loss = (LN2 + LN2) / 2 + (LN2 + LN4) / 2 + 2 * math.log(4 / 3) / 2
    check("spans_or_none", outputs, features, loss, 2.0, 1.0)


@pytest.mark.parametrize("kind", ["classification", "multi_label", "multi_regression"])
def test_labels_that_would_broadcast_in_silence_are_refused(kind):
    labels = tf.constant([[1.0], [1.0], [2.0]] if "regression" in kind else [[1], [1], [2]])
    with pytest.raises(ValueError):
        task_sums(KINDS[kind], {"logits": CHANCES}, {"labels": labels, "example_weights": WEIGHTS})
