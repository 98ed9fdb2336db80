"""The whole command with the real contestants, 10 s each."""

import json

import pytest
import yaml

from albert_keras.benchmarks.learning.learners import learners_for
from albert_keras.benchmarks.learning.process import python_for
from albert_keras.cli import main
from albert_keras.training.config import PretrainingConfig
from data_pipeline.records.record_folder import RecordFiles


def test_peers_have_a_shape_that_they_know(tiny_records, held_out_records):
    shape = {"size": "albert-tiny", "sharing": "none", "position_embedding": "rotary"}
    config = PretrainingConfig(model=shape)
    records, held_out = RecordFiles(tiny_records), RecordFiles(held_out_records)
    peers = ("transformers", "keras-nlp")
    ours, theirs, keras_nlp = learners_for(records, held_out, config, "r", peers, (1e-3,))
    assert ours.settings["config"]["model"] == shape
    assert theirs.settings["config"]["architectures"] == ["AlbertForMaskedLM"]
    for found in (theirs.settings["config"], keras_nlp.settings["config"]):
        assert (found["hidden_size"], found["num_hidden_layers"]) == (128, 2)
        assert "position_embedding" not in found


@pytest.mark.slow
def test_all_contestants_train(tiny_records, held_out_records, tiny_training, tmp_path, capsys):
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(yaml.safe_dump(tiny_training.model_dump(mode="json", exclude_unset=True)))
    words = ["--records", tiny_records, "--eval-data", held_out_records, "--recipe", recipe]
    words += ["--minutes", 1 / 6, "--peer-lr", "1e-3", "--out", tmp_path / "out", "--json"]
    assert main(["benchmark", "learn", *map(str, words)]) == 0
    result = json.loads(capsys.readouterr().out)
    for found in result["learners"]:
        if found["peer"] == "transformers" and python_for(("torch", "transformers")) is None:
            assert found["failed"].startswith("not installed")
            continue
        (measured,) = found["rounds"].values()
        points = measured["points"]
        assert 2 < points[-1]["loss"] < points[0]["loss"] + 0.01, found["label"]
        # On a busy machine the first update may take longer than the whole time.
        assert points[-1]["seconds"] < 12 or points[-1]["updates"] <= 2
    (compared,) = result["comparison"]["rounds"]
    assert compared["best_peer"].endswith("rate 0.001")
