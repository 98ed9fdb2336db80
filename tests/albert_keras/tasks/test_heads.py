"""The heads say what NumPy says, under the reference's names."""

import numpy as np

from albert_keras.models.task_heads import LinearHead, SpansOrNoneHead
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.conftest import SHAPE

CONFIG = SHAPE.replace(hidden_size=8, initializer_range=0.3)
HIDDEN = np.random.default_rng(0).normal(size=(3, 9, 8)).astype(np.float32)
#: Query and separators out; the second row is shorter, the third has nowhere to go but [CLS].
P_MASK = np.array([[0, 1, 1, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1, 1, 1, 1], [0] + [1] * 8])
INPUT_MASK = np.array([[1] * 9, [1] * 4 + [0] * 5, [1] * 9])


def scrambled(head):
    numpy_albert.scramble(head)
    return head, numpy_albert.weights_by_name(head)


def test_initial_weights_are_as_wide_as_in_the_reference():
    config = CONFIG.replace(hidden_size=512)
    wide = SpansOrNoneHead(config).end_hidden.kernel.numpy()
    for weights, stddev in ((wide, 0.3), (LinearHead(config, 40).output_weights.numpy(), 0.02)):
        assert abs(weights).max() <= 2 * stddev
        assert abs(weights.std() / stddev - 0.88) < 0.02  # what the cut at two leaves


def log_softmax(logits, is_out):
    logits = np.where(is_out, -1e30, logits)
    logits = logits - logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def numpy_starts(weights, hidden, is_out):
    """Returns log-probabilities of starts and logits of "no answer"."""
    logits = hidden @ weights["start_logits/dense/kernel"] + weights["start_logits/dense/bias"]
    log_probs = log_softmax(logits[..., 0], is_out)
    mean = (np.exp(log_probs)[..., None] * hidden).sum(1)
    joined = np.concatenate([mean, hidden[:, 0]], -1) @ weights["answer_class/dense_0/kernel"]
    joined = np.tanh(joined + weights["answer_class/dense_0/bias"])
    return log_probs, (joined @ weights["answer_class/dense_1/kernel"])[:, 0]


def numpy_ends(weights, hidden, is_out, start):
    """Returns log-probabilities of ends in one row after one start."""
    joined = np.concatenate([hidden, np.tile(hidden[start], (len(hidden), 1))], -1)
    joined = joined @ weights["end_logits/dense_0/kernel"] + weights["end_logits/dense_0/bias"]
    joined = np.tanh(joined)
    joined = (joined - joined.mean(-1, keepdims=True)) / joined.std(-1, keepdims=True)
    joined = joined * weights["end_logits/LayerNorm/gamma"] + weights["end_logits/LayerNorm/beta"]
    logits = joined @ weights["end_logits/dense_1/kernel"] + weights["end_logits/dense_1/bias"]
    return log_softmax(logits[:, 0], is_out)


def test_spans_or_none_in_training_follow_the_right_start():
    head, weights = scrambled(SpansOrNoneHead(CONFIG, dropout=0.0))
    starts = np.array([4, 2, 0])
    inputs = {"p_mask": P_MASK, "input_mask": INPUT_MASK, "start_positions": starts}
    outputs = head(HIDDEN, inputs, training=True)
    is_out = P_MASK | (1 - INPUT_MASK)
    log_probs, null_logits = numpy_starts(weights, HIDDEN, is_out)
    ends = [numpy_ends(weights, *row) for row in zip(HIDDEN, is_out, starts, strict=True)]
    np.testing.assert_allclose(outputs["start_log_probs"], log_probs, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["end_log_probs"], ends, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["null_logits"], null_logits, atol=1e-5)


def test_fewer_than_five_places_are_filled_up_with_the_first_at_no_chance():
    outputs = SpansOrNoneHead(CONFIG)(HIDDEN[:, :3], {"p_mask": np.zeros((3, 3))})
    assert outputs["start_indices"].shape == (3, 5) and outputs["end_indices"].shape == (3, 25)
    assert set(outputs["start_indices"][0, :3].numpy()) == {0, 1, 2}
    np.testing.assert_array_equal(outputs["start_indices"][:, 3:], np.zeros((3, 2)))
    assert (outputs["start_log_probs"][:, 3:].numpy() < -1e29).all()
