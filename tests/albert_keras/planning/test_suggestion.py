"""A run with a time budget and no model gets one that suits its records and this machine."""

import json
import os

import pytest

from albert_keras.cli import main
from albert_keras.planning.suggestion import suggest_config
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.cost import peak
from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo


@pytest.fixture(autouse=True)
def usual_machine(monkeypatch):
    """The machine has 0.8 TFLOP/s; commands set TensorFlow's log level for their own process."""
    monkeypatch.setattr(peak, "measure_peak", lambda precision, seconds, on_cpu: 0.8e12)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


@pytest.fixture(scope="module")
def unmasked_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records without static masks, with room for 12 predictions in 32 tokens."""
    config = tiny_data_config.replace(static_masks=False, max_predictions_per_seq=12)
    out = tmp_path_factory.mktemp("records") / "unmasked"
    return build_records(tiny_documents, tiny_tokenizer, out, config).path


def config_for(time_budget, **flags):
    return PretrainingConfig.of({}, time_budget=time_budget, **flags)


def test_a_short_run_gets_the_smallest_model_and_its_settings(unmasked_records):
    config = suggest_config(unmasked_records, config_for("4m"))
    model = {"size": "albert-tiny", "position_embedding": "rotary"}
    assert config.model == model
    assert (config.optimizer.name, config.optimizer.lr) == ("muon", 0.004)
    assert config.training.batch_size == 128 and config.training.mask_rate == 0.3
    assert config.training.time_budget == "4m"


def test_more_time_and_a_faster_machine_get_a_larger_model(unmasked_records, monkeypatch):
    shape = suggest_config(unmasked_records, config_for("8h")).albert_config(1000)
    assert shape.hidden_size == 128  # for a few hundred sentences
    info = json.loads((unmasked_records / "dataset_info.json").read_text())
    assert info["config"]["copies"] == 2
    from albert_keras.planning import suggestion

    monkeypatch.setattr(suggestion, "_text_positions", lambda info: 1e8)
    monkeypatch.setattr(peak, "measure_peak", lambda precision, seconds, on_cpu: 8e12)
    shape = suggest_config(unmasked_records, config_for("8h")).albert_config(1000)
    assert shape.hidden_size >= 256 and shape.sharing == "all"


def test_long_records_get_a_model_that_takes_them(unmasked_records, tmp_path):
    DatasetInfo.read(unmasked_records).replace(max_seq_length=1024).save(tmp_path)
    config = suggest_config(tmp_path, config_for("4m"))
    assert config.albert_config(1000).max_position_embeddings == 1024


def test_static_masks_keep_their_rate(tiny_records):
    config = suggest_config(tiny_records, config_for("4m"))
    assert config.training.mask_rate is None and config.size == "albert-tiny"
    dynamic = suggest_config(tiny_records, config_for("4m", masks="dynamic"))
    assert dynamic.training.mask_rate == 0.156  # 5 of 32 tokens are the room of the records


def test_given_settings_are_kept(unmasked_records):
    config = suggest_config(unmasked_records, config_for("4m", batch_size=16, steps=70, lr="0.01"))
    assert (config.training.batch_size, config.training.steps) == (16, 70)
    assert config.optimizer == PretrainingConfig.of({}, lr="0.01").optimizer


@pytest.mark.parametrize(
    "values",
    [
        {"training": {"steps": 10}},
        {"training": {"time_budget": "4m"}, "model": {"size": "albert-tiny"}},
        {"training": {"time_budget": "4m", "strategy": "mirrored"}},
        {"training": {"time_budget": "4m"}, "stages": [{"share": 1.0}]},
    ],
)
def test_other_runs_are_left_alone(values, unmasked_records):
    config = PretrainingConfig.of(values)
    assert suggest_config(unmasked_records, config) is config


def test_records_must_exist(tmp_path):
    with pytest.raises(InputError, match="nowhere` does not exist"):
        suggest_config(tmp_path / "nowhere", config_for("4m"))


def test_an_existing_run_keeps_its_model(unmasked_records, tiny_run, monkeypatch):
    monkeypatch.setattr(peak, "measure_peak", None)
    config = suggest_config(unmasked_records, config_for("4m"), tiny_run)
    assert config.model["hidden_size"] == 32 and config.training.steps == 12
    assert config.training.time_budget == "4m"


def test_the_command_chooses_a_model_and_resumes_with_it(
    unmasked_records, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "run"
    words = ["pretrain", "--data", str(unmasked_records), "--time-budget", "4s", "--out", str(out)]
    assert main(words) == 0
    assert (
        "chosen for 4 s on this machine: ALBERT, 2 layers that share one" in capsys.readouterr().err
    )
    record = json.loads((out / "run.json").read_text())
    assert record["config"]["model"] == {
        "size": "albert-tiny",
        "position_embedding": "rotary",
    }
    monkeypatch.setattr(peak, "measure_peak", None)  # a run that exists needs no measurement
    assert main([*words, "--debug"]) == 0
    assert "resuming" in capsys.readouterr().err
    assert main([*words, "--batch-size", "8"]) == 2
    assert "config.training.batch_size: was 128, is now 8" in capsys.readouterr().err
