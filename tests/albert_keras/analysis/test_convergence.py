"""The state after each layer, and masked tokens read out early."""

import numpy as np
import pytest

from albert_keras import analyze_convergence
from albert_keras.analysis.convergence import _checked_depth, _compared, _states
from albert_keras.analysis.inputs import AnalysisData
from albert_keras.analysis.models import open_models
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.training.evaluate import evaluate
from data_pipeline.errors import InputError


def test_the_trained_depth_has_the_accuracy_of_the_evaluation(tiny_run, tiny_records):
    found = analyze_convergence(tiny_run, tiny_records, limit=10_000).depths
    assert [state.depth for state in found] == list(range(7))  # three times two layers
    scores = evaluate(tiny_run, tiny_records, allow_trained_rows=True)
    assert found[2].masked_lm_accuracy == pytest.approx(scores.masked_lm_accuracy, abs=2e-3)
    assert found[2].masked_lm_loss == pytest.approx(scores.masked_lm_loss, rel=2e-3)
    assert found[2].to_trained_l2 == 0 and found[3].to_trained_l2 == pytest.approx(found[3].l2)
    assert (found[0].l2, found[0].cosine, found[1].turn) == (None, None, None)


def test_beyond_the_trained_depth_the_same_layer_is_applied(tiny_run, texts, encoder, sequences):
    model = open_models(tiny_run)[0]
    deeper = AlbertForPretraining(
        model.config.replace(num_hidden_layers=5), sentence_head=False, dtype="float32"
    )
    for target, source in zip(deeper.weights, model.model.weights, strict=True):
        target.assign(source)
    data = AnalysisData(texts)
    (inputs,) = data.batches(model, is_masked=True)
    outputs = deeper.encoder(inputs, return_all_layers=True)["layer_outputs"]
    is_real = inputs["input_mask"] > 0
    for depth, state in enumerate(_states(model, data, 5)):
        if depth > 1:
            before, after = (outputs[depth - k].numpy()[is_real] for k in (2, 1))
            expected = np.linalg.norm(after - before, axis=1).mean()
            assert state.l2 == pytest.approx(expected, rel=1e-4)


def test_oscillation_turns_and_a_straight_line_does_not():
    point = np.array([[1.0, 2.0]])
    oscillating = _compared([point, -point, point, -point], point)
    np.testing.assert_allclose(oscillating[2:, 3], -1)
    np.testing.assert_allclose(oscillating[:, 4], [0, 2 * 5**0.5] * 2)
    straight = _compared([point, 2 * point, 3 * point], point)
    np.testing.assert_allclose(straight[2, 3], 1)
    np.testing.assert_allclose(straight[1:, 2], 1)  # the cosine of neighbouring states


def test_only_shared_layers_go_beyond_the_trained_depth(tiny_run):
    model = open_models(tiny_run)[0]
    assert (_checked_depth(model, None), _checked_depth(model, 9)) == (6, 9)
    config = model.config.replace(sharing="none")
    other = model._replace(model=AlbertForPretraining(config, sentence_head=False))
    assert _checked_depth(other, None) == 2
    with pytest.raises(InputError, match="`depth` must be from 1 to 2.*Received: 3"):
        _checked_depth(other, 3)


def test_texts_are_masked_the_same_way_each_time(tiny_run, texts, tmp_path):
    first = analyze_convergence(tiny_run, texts, tmp_path / "out", depth=3, random_weights=True)
    again = analyze_convergence(tiny_run, texts, depth=3, random_weights=True)
    assert first.depths == again.depths and len(first.depths) == 8
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"convergence.csv", "convergence.json", "convergence.png"}
