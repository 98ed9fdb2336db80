"""The state after each layer, compared with the layers of each text alone; reading out early."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.cli import main
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.research.analyze.inputs import AnalysisData, open_models
from albert_keras.research.analyze.layers import (
    _checked_depth,
    _states,
    analyze_layers,
    differences,
)
from albert_keras.training.evaluate import evaluate
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo

TEXTS = ["The old ferry left the harbour.", "Rain.", "Seven geese crossed the frozen lake"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Returns a file with a text on each line."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


@pytest.mark.slow
def test_the_trained_depth_has_the_accuracy_of_the_evaluation(tiny_run, tiny_records):
    found = analyze_layers(tiny_run, tiny_records, depth=6, limit=10_000).depths
    assert [state.depth for state in found] == list(range(7))
    scores = evaluate(tiny_run, tiny_records, allow_trained_rows=True)
    assert found[2].masked_lm_accuracy == pytest.approx(scores.masked_lm_accuracy, abs=2e-3)
    assert found[2].masked_lm_loss == pytest.approx(scores.masked_lm_loss, rel=2e-3)
    assert (found[0].l2, found[0].cosine) == (None, None)


def test_beyond_the_trained_depth_the_same_layer_is_applied(tiny_run, texts):
    model = open_models(tiny_run)[0]
    deeper = AlbertForPretraining(
        model.config.replace(num_hidden_layers=5), sentence_head=False, dtype="float32"
    )
    for target, source in zip(deeper.weights, model.model.weights, strict=True):
        target.assign(source)
    data = AnalysisData(texts)
    (inputs,) = data.batches(model)
    own = {name: inputs[name] for name in ("input_ids", "input_mask", "segment_ids")}
    outputs = deeper.encoder(own, return_all_layers=True)["layer_outputs"]
    is_real = inputs["input_mask"] > 0
    for depth, state in enumerate(_states(model, data, 5)):
        if depth > 1:
            before, after = (outputs[depth - k].numpy()[is_real] for k in (2, 1))
            expected = np.linalg.norm(after - before, axis=1).mean()
            assert state.l2 == pytest.approx(expected, rel=1e-4)


def test_only_shared_layers_go_beyond_the_trained_depth(tiny_run):
    model = open_models(tiny_run)[0]
    assert (_checked_depth(model, None), _checked_depth(model, 9)) == (2, 9)
    config = model.config.replace(sharing="none")
    other = model._replace(model=AlbertForPretraining(config, sentence_head=False))
    assert _checked_depth(other, None) == 2
    with pytest.raises(InputError, match="`depth` must be from 1 to 2.*Received: 3"):
        _checked_depth(other, 3)


def test_differences_of_known_vectors():
    before, after = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 2.0]])
    expected = [[0, 5**0.5], [1, 0], [0, 90]]
    np.testing.assert_allclose(differences(before, after), expected, atol=1e-6)


def test_the_command_writes_what_python_returns(tiny_run, texts, tmp_path, capsys):
    found = analyze_layers(tiny_run, texts, depth=3, random_weights=True)
    words = ["analyze", "layers", str(tiny_run), "--data", str(texts), "--depth", "3"]
    out = tmp_path / "out"
    assert main([*words, "--random-weights", "--out", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    # Texts are masked the same way each time.
    assert [list(row.values()) for row in printed["depths"]] == [list(row) for row in found.depths]
    assert len(found.depths) == 8 and found.models[1]["random_weights"]
    assert {path.name for path in out.iterdir()} == {"layers.csv", "layers.json", "layers.png"}
    assert main([*words, "--out", str(out)]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_models_of_other_formats_and_shipped_models_are_opened(tiny_export, texts):
    found = analyze_layers([tiny_export], texts, limit=2)
    assert found.num_sequences == 2 and found.models[0]["num_hidden_layers"] == 2
    with pytest.raises(InputError, match="each given once"):
        open_models([tiny_export, tiny_export])


def test_records_of_another_tokenizer_are_refused(tiny_run, tiny_records, tmp_path):
    folder = shutil.copytree(tiny_records, tmp_path / "records")
    info = DatasetInfo.load(folder)
    info.replace(tokenizer_digest="0" * 64).save(folder)
    with pytest.raises(InputError, match="tokenizer"):
        analyze_layers(tiny_run, folder)
    with pytest.raises(InputError, match="`limit` must be at least 1"):
        AnalysisData(folder, limit=0)


def test_of_records_the_first_are_read(tiny_run, tiny_records, tiny_tokenizer):
    data = AnalysisData(tiny_records, limit=5, batch_size=3)
    batches = list(data.batches(open_models(tiny_run)[0]))
    assert data.num_sequences == 5 and [len(batch["input_ids"]) for batch in batches] == [3, 2]
    assert tiny_tokenizer.mask_id in batches[0]["input_ids"]
