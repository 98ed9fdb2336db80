"""The heads of tasks: their initial weights, and spans in training and in answers."""

import numpy as np

from albert_keras.models.task_heads import LinearHead, SpansOrNoneHead
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.conftest import SHAPE

CONFIG = SHAPE.replace(hidden_size=8, initializer_range=0.3)
HIDDEN = np.random.default_rng(0).normal(size=(3, 9, 8)).astype(np.float32)
#: Query and separators out; the third row has nowhere to go but [CLS].
P_MASK = np.array([[0, 1, 1, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1, 1, 1, 1], [0] + [1] * 8])


def test_initial_weights_are_as_wide_as_in_the_reference():
    config = CONFIG.replace(hidden_size=512)
    wide = SpansOrNoneHead(config).end_hidden.kernel.numpy()
    for weights, stddev in ((wide, 0.3), (LinearHead(config, 40).output_weights.numpy(), 0.02)):
        assert abs(weights).max() <= 2 * stddev
        assert abs(weights.std() / stddev - 0.88) < 0.02  # what the cut at two leaves


def test_training_follows_a_given_start_as_answers_follow_the_best_one():
    head = SpansOrNoneHead(CONFIG, dropout=0.0)
    numpy_albert.scramble(head)
    answered = head(HIDDEN, {"p_mask": P_MASK})
    best = answered["start_indices"].numpy()[:, 0]
    trained = head(HIDDEN, {"p_mask": P_MASK, "start_positions": best}, training=True)
    np.testing.assert_allclose(trained["null_logits"], answered["null_logits"], atol=1e-5)
    for name in ("start", "end"):
        scores = trained[f"{name}_log_probs"].numpy()
        places = np.argsort(-scores, axis=1, kind="stable")[:, :5]
        np.testing.assert_array_equal(answered[f"{name}_indices"][:, :5], places)
        expected = np.take_along_axis(scores, places, axis=1)
        found = answered[f"{name}_log_probs"][:, :5]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    others = {"p_mask": P_MASK, "start_positions": np.array([4, 2, 0])}
    ends = head(HIDDEN, others, training=True)["end_log_probs"]
    is_same = np.array([4, 2, 0]) == best
    assert (np.isclose(ends, trained["end_log_probs"]).all(axis=1) == is_same).all()


def test_fewer_than_five_places_are_filled_up_with_the_first_at_no_chance():
    outputs = SpansOrNoneHead(CONFIG)(HIDDEN[:, :3], {"p_mask": np.zeros((3, 3))})
    assert outputs["start_indices"].shape == (3, 5) and outputs["end_indices"].shape == (3, 25)
    assert set(outputs["start_indices"][0, :3].numpy()) == {0, 1, 2}
    np.testing.assert_array_equal(outputs["start_indices"][:, 3:], np.zeros((3, 2)))
    assert (outputs["start_log_probs"][:, 3:].numpy() < -1e29).all()
