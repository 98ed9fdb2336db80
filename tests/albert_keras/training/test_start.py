"""Pre-training goes on from trained weights, the heads too, and says what it began with."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.formats.open_weights import open_weights
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import write_tensors
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.fitting import checkpoint_variables
from albert_keras.training.pretrain import pretrain
from albert_keras.training.start import ContinuedPretraining
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.checkpoint_tensors import assert_same
from tests.albert_keras.loaded_weights import values_of

TABLE = "bert/embeddings/position_embeddings"


@pytest.fixture
def begin(tiny_records, tmp_path, monkeypatch):
    """Returns a function that begins a run with given weights, and saves it untrained at step 2."""

    def save_at_once(context, *_, **others):
        context.run.checkpoints.save(2, checkpoint_variables(context.training_step))
        return 2

    def begin(origin, **model):
        settings = {"batch_size": 8, "steps": 2, "precision": "float32"}
        config = PretrainingConfig(training=settings)
        config = config.replace(model=model) if model else config
        with monkeypatch.context() as patch:
            patch.setattr("albert_keras.training.pretrain.fit", save_at_once)
            return pretrain(tiny_records, tmp_path / "begun", config, initial=origin).path

    return begin


def weights_of(path, step):
    run = Run.open(path)
    model = AlbertForPretraining(run.albert_config, seed=99)
    run.checkpoints.restore(step, model)
    return values_of(model)


def told_of(run):
    return json.loads((run / "loaded.json").read_text())


def test_all_weights_are_loaded_the_heads_too_and_the_run_says_so(
    tiny_run, tiny_records, tiny_training, begin
):
    origin = open_weights(tiny_run)
    run = begin(origin)
    assert_same(weights_of(run, 2), weights_of(tiny_run, 12))
    data = Run.open(run).record["data"]
    assert (data["origin"], data["origin_digest"]) == (f"{tiny_run} step 12", origin.digest)
    told = told_of(run)
    assert told[0].startswith(f"loaded from {tiny_run} step 12: ") and "cls/predictions" in told[0]
    assert len(told) == 1
    # It goes on only from the same beginning.
    with pytest.raises(InputError, match=r"data\.origin_digest: was '.*, is now '"):
        begin(open_weights(tiny_run, step=5))
    with pytest.raises(InputError, match=r"data\.origin_digest: was None, is now '"):
        pretrain(tiny_records, tiny_run, tiny_training, initial=open_weights(tiny_run, step=5))


def test_a_checkpoint_without_heads_leaves_them_new(tiny_run, tiny_tokenizer, begin, tmp_path):
    trained = weights_of(tiny_run, 12)
    encoder = {name: value for name, value in trained.items() if name.startswith("bert/")}
    write_tensors(tmp_path / "model.ckpt", encoder)
    Run.open(tiny_run).albert_config.save(tmp_path / "albert_config.json")
    run = begin(open_weights(tmp_path / "model.ckpt", tokenizer=tiny_tokenizer))
    found = weights_of(run, 2)
    assert_same({name: found[name] for name in encoder}, encoder)
    assert np.ptp(found["cls/predictions/output_bias"]) > 1  # frequencies
    new = told_of(run)[1]
    assert new.startswith("newly initialized: cls/predictions/") and "cls/seq_relationship" in new


@pytest.mark.parametrize(
    "model, problem",
    [
        ({"size": "albert-base"}, r"hidden_size: 32 in the weights, 768 in the settings"),
        ({"vocab_size": 100}, r"vocab_size: 307 in the weights, 100 in the settings"),
    ],
)
def test_settings_that_contradict_the_model_are_refused(tiny_run, tiny_records, model, problem):
    continued = ContinuedPretraining.of(open_weights(tiny_run), RecordFiles(tiny_records))
    with pytest.raises(InputError, match=problem):
        continued.model_settings(PretrainingConfig(model=model))


def test_records_of_another_tokenizer_are_refused(tiny_run, tiny_records, tmp_path):
    folder = shutil.copytree(tiny_records, tmp_path / "records")
    info = DatasetInfo.load(folder)
    info.replace(tokenizer_digest="0123").save(folder)
    origin = open_weights(tiny_run)
    with pytest.raises(InputError, match=f"{origin.tokenizer.digest}, or with .* Received: 0123"):
        ContinuedPretraining.of(origin, RecordFiles(folder))


def test_a_trained_model_is_switched_to_block_sparse_attention_and_longer_sequences(
    tiny_run, begin
):
    model = {
        "max_position_embeddings": 96,
        "attention": "block-sparse",
        "attention_block_size": 8,
        "attention_window_blocks": 1,
        "attention_random_blocks": 1,
    }
    run = begin(open_weights(tiny_run), **model)
    shape = Run.open(run).albert_config
    assert shape == Run.open(tiny_run).albert_config.replace(**model)
    assert shape.is_sparse_at(32)  # three of four blocks
    found, wanted = weights_of(run, 2), weights_of(tiny_run, 12)
    np.testing.assert_array_equal(found.pop(TABLE)[:32], wanted.pop(TABLE)[:32])
    assert_same(found, wanted)
    assert "positions 33 to 96 start as copies of trained ones" in told_of(run)


def test_a_trained_model_gets_rotary_positions(tiny_run, tiny_records, begin):
    model = {"position_embedding": "rotary", "max_position_embeddings": 96}
    run = begin(open_weights(tiny_run), **model)
    assert Run.open(run).albert_config == Run.open(tiny_run).albert_config.replace(**model)
    found, wanted = weights_of(run, 2), weights_of(tiny_run, 12)
    del wanted[TABLE]
    assert_same(found, wanted)
    told = " ".join(told_of(run))
    assert "positions are rotary: the table of absolute positions is discarded" in told
    assert "copies" not in told
    # The way back would need a table.
    again = ContinuedPretraining.of(open_weights(run), RecordFiles(tiny_records))
    config = PretrainingConfig(model={"position_embedding": "absolute"})
    with pytest.raises(InputError, match="position_embedding: 'rotary' in the weights, 'absolute'"):
        again.model_settings(config)
    assert again.model_settings(PretrainingConfig())["position_embedding"] == "rotary"
