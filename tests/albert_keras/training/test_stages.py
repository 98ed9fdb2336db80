"""A run of several stages: one optimizer, one log, and the same bits wherever it is interrupted."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.runs.run import Run
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.loop.reports import TIMING, read_log, read_stages
from albert_keras.training.pretrain import pretrain
from data_pipeline.building.build import build_records

STEPS = 9


@pytest.fixture(scope="session")
def short_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records of 16 tokens, without masks, of the documents of `tiny_records`."""
    out = tmp_path_factory.mktemp("short-records") / "records"
    config = tiny_data_config.replace(max_seq_length=16, static_masks=False)
    return build_records(tiny_documents, tiny_tokenizer, out, config).path


@pytest.fixture(scope="module")
def staged(tiny_training, short_records):
    """Returns a run of three stages that differ in everything, whose weights are not shared."""
    values = tiny_training.model_dump(exclude_unset=True)
    values["model"] |= {"num_hidden_layers": 3, "sharing": "none"}
    values["training"] |= {"steps": STEPS, "checkpoint_every": 100, "masks": "dynamic"}
    values["stages"] = [
        {"share": 0.33, "data": str(short_records), "batch_size": 16, "num_hidden_layers": 1},
        {"share": 0.34, "data": str(short_records), "mask_rate": 0.1, "num_hidden_layers": 2},
        {"share": 0.33, "leave_unmasked": 0.0},
    ]
    return PretrainingConfig(**values)


@pytest.fixture(scope="module")
def straight(tiny_records, staged, tmp_path_factory):
    out = tmp_path_factory.mktemp("straight") / "run"
    return pretrain(tiny_records, out, staged).path


def tensors_of(run, step):
    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(step))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def lines_of(run):
    """Returns the log without what depends on the clock."""
    log = [
        {name: value for name, value in line.items() if name not in TIMING}
        for line in read_log(run)
    ]
    return log, read_stages(run)


def assert_equal_runs(found, expected, step=STEPS):
    found_tensors, expected_tensors = tensors_of(found, step), tensors_of(expected, step)
    assert found_tensors.keys() == expected_tensors.keys()
    for name, values in expected_tensors.items():
        np.testing.assert_array_equal(found_tensors[name], values, err_msg=name)
    assert lines_of(found) == lines_of(expected)


def test_x(straight):
    print((straight / "log.jsonl").read_text())
    print((straight / "run.json").read_text())


def test_interrupted_at_and_around_the_edges(staged, straight, tiny_records, tmp_path):
    for steps in (2, 1, 1, 2, 3):  # reaches 2, 3, 4, 6, 9
        pretrain(tiny_records, tmp_path / "run", staged, max_steps=steps)
    assert_equal_runs(tmp_path / "run", straight)
