"""What is asked before a version gets its name: each fault is found."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.export.checks import TEXTS, check_parity
from albert_keras.serving.export.source import open_source
from albert_keras.serving.saved_model.signatures import Signature, check_signature
from data_pipeline.errors import InputError

TEXT = Signature("ask", "predict", {"text": tf.TensorSpec([None], tf.string)}, {})


@pytest.fixture(scope="module")
def source(tiny_run):
    return open_source(tiny_run)


@pytest.fixture(scope="module")
def ask(predictor):
    return predictor.ask


@pytest.fixture(scope="module")
def names(predictor):
    return predictor.names


def test_the_graph_of_a_run_answers_as_the_model(source, ask, names):
    parity = check_parity(source, ask, names)
    assert parity.num_texts == len(TEXTS) and 0 <= parity.largest_difference < 1e-5


@pytest.mark.parametrize("output", ["label", "probabilities"])
def test_a_class_that_is_another_is_found(run_of_kind, pairs_predictor, output):
    def changed(signature, **texts):
        answer = pairs_predictor.ask(signature, **texts)
        return answer | {output: answer[output][::-1]}

    source, names = open_source(run_of_kind("classification")), pairs_predictor.names
    assert check_parity(source, pairs_predictor.ask, names).largest_difference < 1e-5
    with pytest.raises(RuntimeError, match="does not give the same answer"):
        check_parity(source, changed, names)


@pytest.mark.parametrize(
    "name, output, change",
    [
        ("fill_mask", "scores", lambda scores: scores * 1.001),
        ("fill_mask", "pieces", lambda pieces: pieces[:, :, ::-1]),
        ("sentence_order", "in_order", lambda values: values + 1e-4),
        ("sentence_order", "in_order", lambda values: values * np.nan),
    ],
)
def test_a_number_or_piece_that_is_another_is_found(source, ask, names, name, output, change):
    def changed(signature, **texts):
        answer = ask(signature, **texts)
        return answer | {output: change(answer[output])} if signature == name else answer

    message = "does not give the same answer|not finite"
    with pytest.raises((RuntimeError, InputError), match=message):
        check_parity(source, changed, names)


def test_a_row_that_is_missing_or_not_finite_is_found():
    with pytest.raises(RuntimeError, match="`sizes` of signature `ask` has shape"):
        check_signature(TEXT, lambda name, inputs: {"sizes": np.ones(7)}, 1e-5)
    with pytest.raises(RuntimeError, match="`sizes` of signature `ask` is not finite"):
        check_signature(
            TEXT, lambda name, inputs: {"sizes": np.full(len(inputs["text"]), np.nan)}, 1e-5
        )


def lengths(name, inputs):
    sizes = np.array([len(text) for text in inputs["text"]], np.float32)
    shown = np.arange(sizes.max(initial=1)) < sizes[:, None]
    return {"sizes": sizes, "letters": np.where(shown, b"x", b"").astype(object)}


@pytest.mark.parametrize(
    "output, change",
    [
        ("sizes", lambda sizes: sizes - sizes.mean()),
        ("letters", lambda letters: np.flip(letters, axis=0)),
    ],
)
def test_a_row_that_depends_on_others_is_found(output, change):
    check_signature(TEXT, lengths, 1e-5)

    def changed(name, inputs):
        answer = lengths(name, inputs)
        return answer | {output: change(answer[output])}

    with pytest.raises(RuntimeError, match=f"`{output}` in a batch with other texts"):
        check_signature(TEXT, changed, 1e-5)
