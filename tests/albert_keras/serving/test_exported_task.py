"""The kind of task of an export without `export.json`, from its signatures alone."""

import types

import pytest

from albert_keras.serving.exported_task import read_task
from albert_keras.serving.saved_model import signature_methods
from albert_keras.tasks.kinds import CLASSIFICATION, MULTI_LABEL, MULTI_REGRESSION, REGRESSION


@pytest.mark.parametrize(
    "outputs, kind",
    [
        ({"label", "labels", "probability", "probabilities"}, CLASSIFICATION),
        ({"score"}, REGRESSION),
        ({"labels", "probabilities"}, MULTI_LABEL),
        ({"labels", "scores"}, MULTI_REGRESSION),
    ],
)
@pytest.mark.parametrize("takes_pair", [False, True])
def test_the_outputs_determine_the_kind(tmp_path, monkeypatch, outputs, kind, takes_pair):
    names = ("serving_default", "text_pair")[: 1 + takes_pair]
    signatures = [types.SimpleNamespace(name=name, outputs=outputs) for name in names]
    monkeypatch.setattr(signature_methods, "read_signatures", lambda folder: signatures)
    (tmp_path / "saved_model.pb").touch()
    found = read_task(tmp_path)
    assert found.task.kind is kind and found.task.takes_pair == takes_pair
