"""Records become a run, and an interrupted run becomes the same run."""

import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingStopped
from albert_keras.training.evaluate import evaluate
from albert_keras.training.pretrain import pretrain
from albert_keras.training.record_source import log_frequencies
from albert_keras.training.saving import SaveCheckpoints
from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.files import LOCK_FILE, FolderLock
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.checkpoint_tensors import tensors_of


def test_the_folder_of_a_run_explains_itself(tiny_run):
    names = {path.name for path in tiny_run.iterdir()}
    assert names == {
        "albert_config.json",
        "checkpoints",
        "curves.png",
        "log.jsonl",
        "run.json",
        "tensorboard",
        "tokenizer",
        "trained_on",
    }
    record = json.loads((tiny_run / "run.json").read_text())
    assert record["config"]["training"]["steps"] == 12
    assert record["versions"]["tensorflow"] == tf.__version__


@pytest.mark.slow
def test_a_run_of_too_many_epochs_says_so_and_proposes_a_shorter_one(
    tiny_records, tiny_training, tmp_path, caplog
):
    caplog.set_level("INFO")
    config = tiny_training.with_flags(steps=100_000)
    pretrain(tiny_records, tmp_path / "run", config, max_steps=1)
    [line] = [line for line in caplog.messages if line.startswith("100,000 steps of ")]
    [warning] = [line for line in caplog.messages if "More than 100 epochs rarely help" in line]
    records, batch = len(RecordFiles(tiny_records)), config.training.batch_size
    assert line == f"100,000 steps of {batch} records: {100_000 * batch / records:,.0f} epochs"
    assert f"`--steps {math.ceil(40 * records / batch)}` for 40 epochs" in warning


def test_checkpoints_carry_the_reference_names(tiny_run):
    assert Run.open(tiny_run).checkpoints.steps() == [5, 10, 12]
    tensors = tensors_of(tiny_run, 12)
    block = "bert/encoder/transformer/group_0/inner_group_0"
    assert tensors["global_step"] == 12 and tensors["global_step"].dtype == np.int64
    assert tensors["bert/embeddings/word_embeddings"].shape == (307, 16)
    assert tensors[f"{block}/attention_1/self/query/kernel/adam_m"].shape == (32, 32)
    assert tensors["cls/seq_relationship/output_weights"].shape == (2, 32)


@pytest.mark.slow
def test_a_run_stopped_by_signals_goes_on_to_the_same_weights(
    tiny_run, tiny_records, tiny_training, tmp_path
):
    """The first comes at a step that is saved anyway, the second at one that is not."""
    on_batch_end = SaveCheckpoints.on_train_batch_end

    for stop in (5, 7):

        def stop_at_step(self, batch, logs=None, stop=stop):
            if self.step + 1 == stop:
                os.kill(os.getpid(), signal.SIGTERM)
            on_batch_end(self, batch, logs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SaveCheckpoints, "on_train_batch_end", stop_at_step)
            with pytest.raises(TrainingStopped, match=f"step {stop}"):
                pretrain(tiny_records, tmp_path / "run", tiny_training)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        assert Run.open(tmp_path / "run").checkpoints.latest() == stop
    result = pretrain(tiny_records, tmp_path / "run", tiny_training)
    assert result.resumed_from == 7 and result.step == 12

    straight, resumed = tensors_of(tiny_run, 12), tensors_of(tmp_path / "run", 12)
    assert straight.keys() == resumed.keys()
    for name, values in straight.items():
        np.testing.assert_array_equal(values, resumed[name], err_msg=name)


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
            pretrain(tiny_records, run, tiny_training, allow_changes="data", steps=20)
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
    fault = f"Record {number} of `{path}` is damaged"
    with pytest.raises(InputError, match=re.escape(fault)):
        pretrain(folder, tmp_path / "run", tiny_training)
    with pytest.raises(InputError, match=re.escape(fault)):
        pretrain(tiny_records, tmp_path / "run", tiny_training, eval_data=folder)
    with pytest.raises(InputError, match=re.escape(fault)):
        log_frequencies(RecordFiles(folder))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_keeps_the_optimizer_it_was_started_with(tiny_records, tiny_training, tmp_path):
    values = tiny_training.model_dump(exclude_unset=True)
    started = type(tiny_training)(**(values | {"optimizer": {"name": "lamb", "lr": 0.003}}))
    pretrain(tiny_records, tmp_path / "run", started, max_steps=1)
    # As if "auto" had been LAMB, at this rate, for this size when the run was started.
    resumed = type(tiny_training)(**(values | {"optimizer": {}}))
    result = pretrain(tiny_records, tmp_path / "run", resumed, max_steps=1)
    assert result.step == 2
    kept = Run.open(result.path).record["config"]["optimizer"]
    assert (kept["name"], kept["lr"], kept["beta_2"]) == ("lamb", 0.003, 0.999)


@pytest.mark.slow
def test_a_run_keeps_the_shape_it_was_started_with(
    tiny_records, tiny_training, tmp_path, monkeypatch
):
    started = pretrain(tiny_records, tmp_path / "run", tiny_training, max_steps=1)
    shape = Run.open(started.path).albert_config
    # As if the named size had another shape in this version.
    of_name = AlbertConfig.from_name.__func__
    assert "num_hidden_layers" not in tiny_training.model
    monkeypatch.setattr(
        AlbertConfig,
        "from_name",
        classmethod(lambda cls, name, **own: of_name(cls, name, **{"num_hidden_layers": 7} | own)),
    )
    resumed = pretrain(tiny_records, started.path, tiny_training, max_steps=1)
    assert (resumed.step, Run.open(resumed.path).albert_config) == (2, shape)
    with pytest.raises(InputError, match="num_hidden_layers: was .*, is now 3"):
        changed = tiny_training.replace(model=tiny_training.model | {"num_hidden_layers": 3})
        pretrain(tiny_records, started.path, changed)


def test_a_change_that_cannot_work_is_not_offered_and_changes_no_file(
    tiny_run, tiny_records, tiny_training, tmp_path
):
    run = Path(shutil.copytree(tiny_run, tmp_path / "run"))
    other = tiny_training.replace(model=tiny_training.model | {"hidden_size": 16})
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for changes in ((), ["config", "albert_config"]):
        with pytest.raises(InputError, match="checkpoints do not fit") as caught:
            pretrain(tiny_records, run, other, allow_changes=changes)
        assert "--allow-change" not in str(caught.value)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    assert pretrain(tiny_records, run, tiny_training).step == 12


def test_other_records_do_not_go_on_with_a_run(tiny_run, tiny_records, tiny_training, tmp_path):
    shutil.copytree(tiny_records, tmp_path / "half")
    info = DatasetInfo.load(tmp_path / "half")
    info.replace(shards=info.shards[:1]).save(tmp_path / "half")
    with pytest.raises(InputError, match="data.fingerprint"):
        pretrain(tmp_path / "half", tiny_run, tiny_training)


@pytest.mark.slow
def test_masked_pieces_alone_can_be_trained(
    tiny_records, held_out_records, tiny_training, tmp_path
):
    values = tiny_training.model_dump()
    values["training"] |= {"sentence_order_weight": 0, "steps": 2}
    run = pretrain(tiny_records, tmp_path / "run", type(tiny_training)(**values)).path
    assert not any("seq_relationship" in name for name in tensors_of(run, 2))
    assert evaluate(run, held_out_records).sentence_order_accuracy is None


TWO_REPLICAS = """
import sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from albert_keras.training import pretrain as module
from albert_keras.training.config import PretrainingConfig
module.build_strategy = lambda name, *_: tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
module.draw_curves = lambda run: None
config = PretrainingConfig.model_validate_json(sys.argv[3])
module.pretrain(sys.argv[1], sys.argv[2], config)
"""


def test_two_replicas_compute_what_one_does(tiny_records, tiny_training, tmp_path):
    """With LAMB, whose trust ratio needs the whole gradient."""
    optimizer = {"name": "lamb", "lr": 0.01, "warmup_steps": 2}
    config = type(tiny_training)(
        **tiny_training.model_dump(exclude_unset=True) | {"optimizer": optimizer}
    )
    pretrain(tiny_records, tmp_path / "one", config)
    command = [sys.executable, "-c", TWO_REPLICAS, tiny_records, tmp_path / "two"]
    settings = config.model_dump_json(exclude_unset=True)
    subprocess.run([*command, settings], check=True, capture_output=True)
    one, two = (tensors_of(tmp_path / name, 12) for name in ("one", "two"))
    for name in one.keys() - {"global_step"}:
        if "adam_" not in name:
            np.testing.assert_allclose(one[name], two[name], atol=2e-4, err_msg=name)
    for before, after in zip(*(read_log(tmp_path / each) for each in ("one", "two")), strict=True):
        assert before["loss"] == pytest.approx(after["loss"], rel=1e-4)
        assert before["tokens_per_second"] > 0 and after["gradient_norm"] == pytest.approx(
            before["gradient_norm"], rel=1e-3
        )


@pytest.fixture(scope="module")
def unlabelled_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records as of RoBERTa: one segment, no label, no masks."""
    config = tiny_data_config.replace(input_format="full-sentences", static_masks=False)
    out = tmp_path_factory.mktemp("unlabelled") / "records"
    return build_records(tiny_documents, tiny_tokenizer, out, config).path


def test_records_without_order_and_masks_train_a_masked_model(
    unlabelled_records, tiny_training, tmp_path
):
    run = pretrain(unlabelled_records, tmp_path / "run", tiny_training).path
    assert Run.open(run).record["config"]["training"]["sentence_order_weight"] == 0
    lines = read_log(run)
    assert all(line["masked_lm_loss"] > 0 and "sentence_order_loss" not in line for line in lines)
    again = pretrain(unlabelled_records, run, tiny_training)
    assert again.resumed_from == again.step == 12


def test_an_order_loss_without_labels_is_refused(unlabelled_records, tiny_training, tmp_path):
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"]["sentence_order_weight"] = 0.5
    with pytest.raises(InputError, match="sentence_order_weight` must be 0: the records have no"):
        pretrain(unlabelled_records, tmp_path / "run", type(tiny_training)(**values))


@pytest.mark.slow
def test_dynamic_masks_go_on_where_they_were(tiny_records, tiny_training, tmp_path):
    whole = pretrain(tiny_records, tmp_path / "whole", tiny_training, masks="dynamic")
    pretrain(tiny_records, tmp_path / "parts", tiny_training, masks="dynamic", max_steps=5)
    pretrain(tiny_records, tmp_path / "parts", tiny_training, masks="dynamic")
    whole, parts = tensors_of(whole.path, 12), tensors_of(tmp_path / "parts", 12)
    for name, values in whole.items():
        np.testing.assert_array_equal(parts[name], values, err_msg=name)
    static = tensors_of(pretrain(tiny_records, tmp_path / "static", tiny_training).path, 12)
    assert any((static[name] != values).any() for name, values in whole.items())
