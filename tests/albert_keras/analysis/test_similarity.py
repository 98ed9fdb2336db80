"""Input and output of each layer, compared with a loop over texts without padding."""

import csv
import json

import numpy as np
import pytest

from albert_keras import analyze_similarity
from albert_keras.analysis.inputs import AnalysisData
from albert_keras.analysis.models import open_models
from albert_keras.analysis.similarity import differences
from albert_keras.cli import main
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError


def test_means_are_over_all_tokens_but_padding(tiny_run, texts, states):
    found = analyze_similarity(tiny_run, texts, batch_size=2)
    assert (found.num_sequences, len(found.layers)) == (3, 2)
    assert found.models[0]["num_tokens"] == sum(len(one[0]) for one in states)
    for layer, change in enumerate(found.layers):
        before, after = (np.concatenate([one[layer + k] for one in states]) for k in (0, 1))
        norms = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosines = (before * after).sum(axis=1) / norms
        assert change.l2 == pytest.approx(np.linalg.norm(after - before, axis=1).mean(), rel=1e-4)
        assert change.cosine == pytest.approx(cosines.mean(), abs=1e-4)
        assert change.degrees == pytest.approx(np.degrees(np.arccos(cosines)).mean(), abs=1e-2)


def test_differences_of_known_vectors():
    before, after = np.array([[1.0, 0], [2, 0], [1, 0]]), np.array([[0.0, 1], [2, 0], [-1, 0]])
    expected = [[2**0.5, 0, 2], [0, 1, -1], [90, 0, 180]]
    np.testing.assert_allclose(differences(before, after), expected, atol=1e-6)


def test_random_weights_are_those_of_the_shape(tiny_run, tiny_export, texts):
    both = analyze_similarity([tiny_run, tiny_export], texts, random_weights=True)
    labels = [model["model"] for model in both.models]
    # The two have the same shape, so one model with random weights stands for both.
    assert labels == [str(tiny_run), f"{tiny_run}, random weights", str(tiny_export)]
    assert [model["random_weights"] for model in both.models] == [False, True, False]
    trained, random, exported = (both.layers[start : start + 2] for start in (0, 2, 4))
    for one, other in zip(trained, exported, strict=True):
        assert one.l2 == pytest.approx(other.l2, rel=1e-4)
    assert abs(trained[0].l2 - random[0].l2) > 1e-3
    other_seed = analyze_similarity(tiny_run, texts, random_weights=True, seed=1).layers[2:]
    assert other_seed[0].l2 != random[0].l2


def test_keras_files_are_read(tiny_run, texts, tmp_path):
    run = Run.open(tiny_run)
    run.load_model(precision="float32").save(tmp_path / "model.keras")
    run.tokenizer.save(tmp_path / "tokenizer")
    found = analyze_similarity(tmp_path / "model.keras", texts).layers
    expected = analyze_similarity(tiny_run, texts).layers
    assert [one.l2 for one in found] == pytest.approx([one.l2 for one in expected], rel=1e-5)


def test_records_are_read_with_and_without_masks(tiny_run, tiny_records, tiny_tokenizer):
    model = open_models(tiny_run)[0]
    data = AnalysisData(tiny_records, limit=5, batch_size=3)
    assert data.num_sequences == 5
    plain, masked = (list(data.batches(model, is_masked)) for is_masked in (False, True))
    assert [len(batch["input_ids"]) for batch in plain] == [3, 2]
    for one, other in zip(plain, masked, strict=True):
        assert tiny_tokenizer.mask_id not in one["input_ids"]
        rows, slots = np.nonzero(other["masked_lm_weights"])
        positions = other["masked_lm_positions"][rows, slots]
        labels = other["masked_lm_ids"][rows, slots]
        np.testing.assert_array_equal(one["input_ids"][rows, positions], labels)
        assert tiny_tokenizer.mask_id in other["input_ids"]


def test_the_folder_has_the_numbers_as_csv_and_json_and_a_figure(tiny_run, texts, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["analyze", "similarity", str(tiny_run), "--data", str(texts), "--out", str(out)]
    assert main([*words, "--random-weights", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    names = {"similarity.csv", "similarity.json", "similarity.png"}
    assert {path.name for path in out.iterdir()} == names
    assert (out / "similarity.png").read_bytes().startswith(b"\x89PNG")
    with open(out / "similarity.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    saved = json.loads((out / "similarity.json").read_text())
    assert saved["layers"] == printed["layers"] and len(rows) == 4
    assert [float(row["l2"]) for row in rows] == [layer["l2"] for layer in saved["layers"]]
    assert main(words) == 2
    assert "nothing is ever overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"models": []}, "at least one, each given once. Received: none"),
        ({"limit": 0}, "`limit` must be at least 1"),
        ({"batch_size": 0}, "`batch_size` must be at least 1"),
        ({"data": "empty.txt"}, "at least one text"),
        ({"data": "records", "text_column": "a"}, "requires a table"),
        ({"models": "nowhere"}, "nowhere"),
    ],
)
def test_wrong_input_is_named(tiny_run, texts, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    (tmp_path / "records").mkdir()
    with pytest.raises(InputError, match=message):
        analyze_similarity(**{"models": tiny_run, "data": texts, "out": "out"} | arguments)
    assert not (tmp_path / "out").exists()


def test_a_model_is_given_once(tiny_run, texts):
    with pytest.raises(InputError, match="each given once"):
        analyze_similarity([tiny_run, tiny_run], texts)
