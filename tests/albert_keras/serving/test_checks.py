"""What is asked before a version gets its name: each fault is found."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.export.checks import check_answers, check_signatures
from albert_keras.serving.export.source import open_source
from albert_keras.serving.saved_model.signatures import Signature, read_signatures


@pytest.mark.parametrize("output", ["label", "probabilities"])
def test_a_class_that_is_another_is_found(of_kind, pairs_predictor, output):
    def changed(signature, **texts):
        answer = pairs_predictor.ask(signature, **texts)
        return answer | {output: answer[output][::-1]}

    model, names = of_kind("classification")[1], pairs_predictor.names
    assert 0 <= check_answers(model, pairs_predictor.ask, names) < 1e-5
    with pytest.raises(RuntimeError, match="does not give the same answer"):
        check_answers(model, changed, names)


@pytest.fixture(scope="module")
def functions(tiny_run):
    return open_source(tiny_run).string_model("float32").functions


@pytest.mark.parametrize(
    "name, output, change",
    [
        ("fill_mask", "scores", lambda scores: scores * 1.1),
        ("fill_mask", "pieces", lambda pieces: pieces[:, :, ::-1]),
        ("sentence_order", "in_order", lambda values: values + 1e-3),
        ("sentence_order", "in_order", lambda values: values * np.nan),
        ("encode", "mean_output", lambda values: values[::-1]),
    ],
)
def test_a_number_or_piece_that_is_another_is_found(predictor, functions, name, output, change):
    [signature] = (one for one in read_signatures(predictor.path) if one.name == name)

    def changed(name, inputs):
        answer = predictor.call(name, inputs)
        return answer | {output: change(answer[output])}

    assert check_signatures(functions, predictor.call, [signature]) < 1e-5
    message = f"does not give the same answer .* `{output}` of signature `{name}`"
    with pytest.raises(RuntimeError, match=message):
        check_signatures(functions, changed, [signature])


@tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
def lengths(text):
    sizes = tf.strings.length(text)
    shown = tf.sequence_mask(sizes)
    return {"sizes": tf.cast(sizes, tf.float32), "letters": tf.where(shown, "x", "")}


@pytest.mark.parametrize(
    "output, change",
    [
        ("sizes", lambda sizes: sizes - sizes.mean()),
        ("sizes", lambda sizes: sizes[:-1]),
        ("letters", lambda letters: np.flip(letters, axis=0)),
    ],
)
def test_a_row_that_is_missing_or_depends_on_others_is_found(output, change):
    def call(name, inputs):
        return {name: one.numpy() for name, one in lengths(inputs["text"]).items()}

    def changed(name, inputs):
        answer = call(name, inputs)
        return answer | {output: change(answer[output])}

    signatures = [Signature("ask", "predict", {"text": tf.TensorSpec([None], tf.string)}, {})]
    check_signatures({"ask": lengths}, call, signatures)
    with pytest.raises(RuntimeError, match=f"output `{output}` of signature `ask`"):
        check_signatures({"ask": lengths}, changed, signatures)
