"""Records become a run, and a run goes on as itself or not at all."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import tensorflow as tf

from albert_keras.runs.log_file import read_evaluations, read_log
from albert_keras.runs.run import Run
from albert_keras.training.pretrain import _log_epochs, pretrain
from albert_keras.training.record_source import log_frequencies
from albert_keras.training.stages import Stage, stages_of
from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.files import LOCK_FILE
from data_pipeline.folder_lock import FolderLock
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.checkpoint_tensors import tensors_of


def test_the_folder_of_a_run_explains_itself(tiny_run):
    names = {path.name for path in tiny_run.iterdir()}
    assert names == {
        "albert_config.json",
        "checkpoints",
        "log.jsonl",
        "model.json",
        "run.json",
        "tensorboard",
        "tokenizer",
        "trained_on",
    }
    record = json.loads((tiny_run / "run.json").read_text())
    assert record["config"]["training"]["steps"] == 12
    assert record["versions"]["tensorflow"] == tf.__version__


def test_the_passes_over_the_records_are_said(tiny_records, tiny_training, caplog):
    caplog.set_level("INFO")
    stage = Stage(RecordFiles(tiny_records), tiny_training.training.replace(batch_size=32))
    _log_epochs(stage.training.replace(steps=100_000), [stage], None)
    assert caplog.messages == ["100,000 steps of 32 records: 4,598 epochs"]


def test_a_finished_run_is_left_alone(tiny_run, tiny_records, tiny_training):
    before = (tiny_run / "log.jsonl").read_bytes()
    result = pretrain(tiny_records, tiny_run, tiny_training)
    assert result.resumed_from == 12 and (tiny_run / "log.jsonl").read_bytes() == before


def test_a_second_training_of_a_run_is_refused(tiny_run, tiny_records, tiny_training, tmp_path):
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    holder = f"is being trained by process {os.getpid()} on host "
    with FolderLock(run) as lock:
        lock.take()
        with pytest.raises(InputError, match=holder):
            pretrain(tiny_records, run, tiny_training, steps=20)
        assert Run.open(run).record["config"]["training"]["steps"] == 12
    (run / LOCK_FILE).write_text("process 1 on host gone")
    assert pretrain(tiny_records, run, tiny_training).step == 12
    assert not (run / LOCK_FILE).exists()


def test_a_damaged_record_is_never_trained_on(tiny_records, tiny_training, tmp_path):
    folder = shutil.copytree(tiny_records, tmp_path / "records")
    path = folder / "pretraining-00001-of-00002.tfrecord"
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)
    number = RecordFiles(folder).info.shards[1].num_records - 1
    fault = re.escape(f"Record {number} of `{path}` is damaged")
    with pytest.raises(InputError, match=fault):
        pretrain(folder, tmp_path / "run", tiny_training)
    with pytest.raises(InputError, match=fault):
        pretrain(tiny_records, tmp_path / "run", tiny_training, eval_data=folder)
    with pytest.raises(InputError, match=fault):
        log_frequencies(RecordFiles(folder))
    assert not (tmp_path / "run").exists()


def test_a_change_that_cannot_work_is_refused_and_changes_no_file(
    tiny_run, tiny_records, tiny_training
):
    other = tiny_training.replace(model=tiny_training.model | {"hidden_size": 16})
    before = {path: path.read_bytes() for path in tiny_run.rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="hidden_size: was 32, is now 16"):
        pretrain(tiny_records, tiny_run, other)
    assert {path: path.read_bytes() for path in tiny_run.rglob("*") if path.is_file()} == before


@pytest.fixture(scope="module")
def unlabelled_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records as of RoBERTa: one segment, no label, no masks."""
    config = tiny_data_config.replace(input_format="full-sentences", static_masks=False)
    out = tmp_path_factory.mktemp("unlabelled") / "records"
    return build_records(tiny_documents[:9], tiny_tokenizer, out, config).path


def test_records_without_order_and_masks_train_a_masked_model(
    unlabelled_records, held_out_records, tiny_training, tmp_path
):
    """Scored on records without labels, too."""
    held_out = shutil.copytree(held_out_records, tmp_path / "held-out")
    DatasetInfo.load(held_out).replace(objective="none").save(held_out)
    training = tiny_training.training.replace(steps=2, report_every=1, evaluate_every=2)
    model = tiny_training.model | {"num_hidden_layers": 1}
    config = tiny_training.replace(model=model, training=training)
    run = pretrain(unlabelled_records, tmp_path / "run", config, held_out).path
    assert Run.open(run).record["config"]["training"]["sentence_order_weight"] == 0
    lines = read_log(run)
    assert len(lines) == 2 and all(line["masked_lm_loss"] > 0 for line in lines)
    assert not any("sentence_order_loss" in line for line in lines)
    assert not any("seq_relationship" in name for name in tensors_of(run, 2))
    assert "sentence_order_accuracy" not in dict(read_evaluations(run))[2]
    assert pretrain(unlabelled_records, run, config, held_out).resumed_from == 2


def test_an_order_loss_without_labels_is_refused(
    unlabelled_records, tiny_records, tiny_training, tmp_path
):
    with pytest.raises(InputError, match="or use `training.sentence_order_weight=0`, which"):
        pretrain(tiny_records, tmp_path / "run", tiny_training, eval_data=unlabelled_records)
    with_weight = tiny_training.training.replace
    masked = tiny_training.replace(training=with_weight(sentence_order_weight=0.0))
    records, held_out = RecordFiles(tiny_records), RecordFiles(unlabelled_records)
    stages_of(masked, records, masked.albert_config(307), held_out)  # needs no labels
    ordered = tiny_training.replace(training=with_weight(sentence_order_weight=0.5))
    with pytest.raises(InputError, match="sentence_order_weight` must be 0: the records have no"):
        pretrain(unlabelled_records, tmp_path / "run", ordered)
