"""Each loss as computed by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tests.albert_keras.tasks.small_tasks import task_counts, task_sums

LN2, LN4 = math.log(2), math.log(4)
#: Chances of three places in three rows, and the weights of the rows.
CHANCES = tf.math.log([[0.25, 0.5, 0.25], [0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
WEIGHTS = tf.constant([1.0, 1.0, 0.0])
POSITIONS = {"start_positions": tf.constant([1, 0, 2]), "end_positions": tf.constant([1, 1, 2])}
OF_SPANS = (LN2 + LN2) / 2 + (LN2 + LN4) / 2
#: Outputs, features, and the sums of losses, of weights and of right answers.
CASES = {
    # Scores are not normalised; the third row would be right and weighs nothing.
    "classification": ({"logits": CHANCES + 7}, {"labels": [1, 1, 2]}, LN2 + LN4, 2, 1),
    # The mean of squared errors is never right.
    "regression": ({"logits": [[1.5], [4.0], [9.0]]}, {"labels": [1.0, 4.0, 0.0]}, 0.25, 2, 0),
    # Labels are right if all of a row are.
    "multi_label": (
        {"logits": tf.math.log([[3.0, 1 / 3], [3.0, 1.0], [9.0, 9.0]])},
        {"labels": [[1, 0], [0, 0], [1, 1]]},
        math.log(4 / 3) + (LN4 + LN2) / 2,
        2,
        1,
    ),
    # [3 rows, 3 places, 3 tags]; each word that is scored counts.
    "tagging": (
        {"logits": tf.stack([CHANCES] * 3)},
        {"tag_ids": [[-1, 0, -1], [1, 1, 2], [0, 0, 0]]},
        LN2 + (LN2 + LN4 + LN2),
        4,
        3,
    ),
    "spans": ({"start_logits": CHANCES + 1, "end_logits": CHANCES - 1}, POSITIONS, OF_SPANS, 2, 1),
    # Chances of no answer: 3/4 where there is none, 1/4 where there is one.
    "spans_or_none": (
        {
            "start_log_probs": CHANCES,
            "end_log_probs": CHANCES,
            "null_logits": tf.math.log([3.0, 1 / 3, 5.0]),
        },
        POSITIONS | {"is_impossible": [1, 0, 0]},
        OF_SPANS + 2 * math.log(4 / 3) / 2,
        2,
        1,
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_sums_are_those_computed_by_hand(kind):
    outputs, features, *expected = CASES[kind]
    outputs = {name: tf.constant(values) for name, values in outputs.items()}
    features = {name: tf.constant(values) for name, values in features.items()}
    features["example_weights"] = WEIGHTS
    sums = task_sums(kind, outputs, features)
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    assert float(task_counts(kind, features)) == expected[1]
    assert {part.dtype for part in sums} == {tf.float32}


def test_tagging_without_a_scored_word_has_no_loss_and_no_gradient():
    logits = tf.Variable(tf.stack([CHANCES] * 3))
    features = {"tag_ids": -tf.ones((3, 3), tf.int32), "example_weights": WEIGHTS}
    with tf.GradientTape() as tape:
        sums = task_sums("tagging", {"logits": logits}, features)
    assert [float(part) for part in sums] == [0, 0, 0]
    np.testing.assert_array_equal(tape.gradient(sums.loss, logits), np.zeros((3, 3, 3)))


@pytest.mark.parametrize("kind", ["classification", "multi_label", "multi_regression"])
def test_labels_that_would_broadcast_in_silence_are_refused(kind):
    labels = tf.constant([[1.0], [1.0], [2.0]] if "regression" in kind else [[1], [1], [2]])
    with pytest.raises(ValueError):
        task_sums(kind, {"logits": CHANCES}, {"labels": labels, "example_weights": WEIGHTS})
