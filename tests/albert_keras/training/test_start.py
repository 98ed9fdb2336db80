"""Pre-training goes on from trained weights, the heads too, and says what it began with."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.formats.open_model import open_model
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import weight_names, write_tensors
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.fitting import checkpoint_variables
from albert_keras.training.pretrain import pretrain
from albert_keras.training.start import ContinuedPretraining
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles

SETTINGS = {
    "training": {
        "steps": 2,
        "batch_size": 8,
        "report_every": 1,
        "precision": "float32",
        "peak_tflops": 1.0,
    },
    "optimizer": {"lr": 1e-30, "warmup_steps": 0},
}


@pytest.fixture(scope="module")
def still():
    """Returns settings under which no weight moves, without a word about the model."""
    return PretrainingConfig(**SETTINGS)


@pytest.fixture(scope="module")
def more(tiny_run, tiny_records, still, tmp_path_factory):
    """Returns the folder of a run that began with the weights of `tiny_run`."""
    out = tmp_path_factory.mktemp("runs") / "more"
    return pretrain(tiny_records, out, still, initial=open_model(tiny_run)).path


def weights_of(path, step):
    run = Run.open(path)
    model = AlbertForPretraining(run.albert_config, seed=99)
    run.checkpoints.restore(step, model)
    return {name: weight.numpy() for name, weight in weight_names(model).items()}


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def test_all_weights_are_loaded_the_heads_too(tiny_run, more):
    assert_same(weights_of(more, 2), weights_of(tiny_run, 12))


def test_the_run_says_what_it_began_with(tiny_run, more):
    origin = open_model(tiny_run)
    data = Run.open(more).record["data"]
    assert (data["origin"], data["origin_digest"]) == (f"{tiny_run} step 12", origin.digest)
    assert Run.open(tiny_run).record["data"]["origin_digest"] is None
    told = json.loads((more / "loaded.json").read_text())
    assert told[0].startswith(f"loaded from {tiny_run} step 12: ") and "cls/predictions" in told[0]
    assert told[1] == "not used: training state, optimizer moments"


def test_a_run_goes_on_only_from_the_same_beginning(
    tiny_run, more, tiny_records, tiny_training, still
):
    before = (more / "log.jsonl").read_bytes()
    again = pretrain(tiny_records, more, still, initial=open_model(tiny_run))
    assert again.resumed_from == 2 and (more / "log.jsonl").read_bytes() == before
    with pytest.raises(InputError, match=r"data\.origin_digest: was '.*, is now '.* \(--allow"):
        pretrain(tiny_records, more, still, initial=open_model(tiny_run, step=5))
    with pytest.raises(InputError, match=r"data\.origin_digest: was None, is now '"):
        pretrain(tiny_records, tiny_run, tiny_training, initial=open_model(tiny_run, step=5))


def test_a_checkpoint_without_heads_leaves_them_new(
    tiny_run, tiny_records, tiny_tokenizer, still, tmp_path, monkeypatch
):
    def save_at_once(context, *_, **others):
        steps = context.training.steps
        context.run.checkpoints.save(steps, checkpoint_variables(context.training_step))
        return steps

    monkeypatch.setattr("albert_keras.training.pretrain.fit", save_at_once)
    monkeypatch.setattr("albert_keras.training.pretrain.draw_curves", lambda _: None)
    trained = weights_of(tiny_run, 12)
    encoder = {name: value for name, value in trained.items() if name.startswith("bert/")}
    write_tensors(tmp_path / "model.ckpt", encoder)
    Run.open(tiny_run).albert_config.save(tmp_path / "albert_config.json")
    origin = open_model(tmp_path / "model.ckpt", tokenizer=tiny_tokenizer)
    out = pretrain(tiny_records, tmp_path / "run", still, initial=origin).path
    found = weights_of(out, 2)
    assert_same({name: found[name] for name in encoder}, encoder)
    assert np.ptp(found["cls/predictions/output_bias"]) > 1  # frequencies
    told = json.loads((out / "loaded.json").read_text())
    assert (
        told[1].startswith("newly initialized: cls/predictions/")
        and "cls/seq_relationship" in told[1]
    )


@pytest.mark.parametrize("kind", ["checkpoint", "keras"])
def test_other_sources(tiny_run, tiny_records, tiny_tokenizer, still, tmp_path, kind):
    if kind == "checkpoint":
        origin = open_model(tiny_run / "checkpoints" / "step-00000012")
        new = set()
    else:
        encoder = AlbertEncoder(Run.open(tiny_run).albert_config, seed=4)
        encoder.save(tmp_path / "encoder.keras")
        origin = open_model(tmp_path / "encoder.keras", tokenizer=tiny_tokenizer)
        new = {"cls/predictions/output_bias", "cls/seq_relationship/output_bias"}
    continued = ContinuedPretraining.of(origin, RecordFiles(tiny_records))
    report = continued.load(AlbertForPretraining(continued.albert_config))
    assert set(report.new) >= new and bool(report.new) == bool(new)


@pytest.mark.parametrize(
    "model, problem",
    [
        ({"size": "albert-base"}, r"hidden_size: 32 in the weights, 768 in the settings"),
        ({"vocab_size": 100}, r"vocab_size: 307 in the weights, 100 in the settings"),
    ],
)
def test_settings_that_contradict_the_model_are_refused(tiny_run, tiny_records, model, problem):
    continued = ContinuedPretraining.of(open_model(tiny_run), RecordFiles(tiny_records))
    with pytest.raises(InputError, match=problem):
        continued.model_settings(PretrainingConfig(model=model))


def test_records_of_another_tokenizer_are_refused(tiny_run, tiny_records, tmp_path):
    folder = shutil.copytree(tiny_records, tmp_path / "records")
    info = DatasetInfo.load(folder)
    info.replace(tokenizer_digest="0123").save(folder)
    origin = open_model(tiny_run)
    with pytest.raises(InputError, match=f"{origin.tokenizer.digest}, or with .* Received: 0123"):
        ContinuedPretraining.of(origin, RecordFiles(folder))


def test_records_without_a_tokenizer_need_as_many_pieces(tiny_run, tiny_records, tmp_path, caplog):
    folder = shutil.copytree(tiny_records, tmp_path / "records")
    info = DatasetInfo.load(folder).replace(tokenizer_digest=None)
    info.save(folder)
    ContinuedPretraining.of(open_model(tiny_run), RecordFiles(folder))
    assert "it cannot be checked that its ids" in caplog.text
    info.replace(vocab_size=290).save(folder)
    with pytest.raises(InputError, match="must have the 307 pieces .* Received: 290"):
        ContinuedPretraining.of(open_model(tiny_run), RecordFiles(folder))


def test_a_trained_model_is_switched_to_block_sparse_attention_and_longer_sequences(
    tiny_run, tiny_records, still, tmp_path
):
    model = {
        "max_position_embeddings": 96,
        "attention": "block-sparse",
        "attention_block_size": 8,
        "attention_window_blocks": 1,
        "attention_random_blocks": 1,
    }
    out = tmp_path / "long"
    pretrain(tiny_records, out, still.replace(model=model), initial=open_model(tiny_run))
    shape = Run.open(out).albert_config
    assert shape == Run.open(tiny_run).albert_config.replace(**model)
    assert shape.is_sparse_at(32)  # three of four blocks
    found, wanted = weights_of(out, 2), weights_of(tiny_run, 12)
    table = "bert/embeddings/position_embeddings"
    np.testing.assert_array_equal(found.pop(table)[:32], wanted.pop(table)[:32])
    assert_same(found, wanted)
    assert "positions 33 to 96 start as copies of trained ones" in (out / "loaded.json").read_text()


def test_a_trained_model_gets_rotary_positions(tiny_run, tiny_records, still, tmp_path):
    model = {"position_embedding": "rotary", "max_position_embeddings": 96}
    out = tmp_path / "rotary"
    pretrain(tiny_records, out, still.replace(model=model), initial=open_model(tiny_run))
    assert Run.open(out).albert_config == Run.open(tiny_run).albert_config.replace(**model)
    found, wanted = weights_of(out, 2), weights_of(tiny_run, 12)
    del wanted["bert/embeddings/position_embeddings"]
    assert_same(found, wanted)
    loaded = (out / "loaded.json").read_text()
    assert "positions are rotary: the table of absolute positions is discarded" in loaded
    assert "copies" not in loaded
    # The way back would need a table.
    again = ContinuedPretraining.of(open_model(out), RecordFiles(tiny_records))
    config = PretrainingConfig(model={"position_embedding": "absolute"})
    with pytest.raises(InputError, match="position_embedding: 'rotary' in the weights, 'absolute'"):
        again.model_settings(config)
    assert again.model_settings(PretrainingConfig())["position_embedding"] == "rotary"
