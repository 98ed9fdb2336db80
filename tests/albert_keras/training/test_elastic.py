"""How many replicas and parts share a batch changes neither its records nor its result."""

import json
import subprocess
import sys

import numpy as np
import pytest

from albert_keras.runs.log_file import read_log
from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.decoding import decode_batch
from data_pipeline.records.record_files import RecordFiles

CODE = """
import json, sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 8)
from albert_keras.training import pretrain as module
from albert_keras.training.config import PretrainingConfig
records, out, config, kinds = sys.argv[1:]
config = PretrainingConfig.model_validate_json(config)
for replicas, parts in json.loads(kinds):
    devices = [f"cpu:{number}" for number in range(replicas)]
    strategy = tf.distribute.MirroredStrategy(devices) if replicas > 1 else None
    module.build_strategy = lambda name, *_: strategy or tf.distribute.get_strategy()
    seen = []
    read = module.RecordFiles.read
    def noting(self, numbers):
        seen.append(numbers.tolist())
        return read(self, numbers)
    module.RecordFiles.read = noting
    module.pretrain(records, f"{out}/{replicas}-{parts}", config, accumulation_steps=parts)
    module.RecordFiles.read = read
"""


def losses_of(tmp_path, records, config, kinds):
    for replicas in sorted({replicas for replicas, _ in kinds}):
        # A process each: TensorFlow's collectives know one group of devices in each.
        parts = [kind for kind in kinds if kind[0] == replicas]
        command = [sys.executable, "-c", CODE, records, tmp_path, config.model_dump_json()]
        run = subprocess.run([*command, json.dumps(parts)], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr[-3000:]
    return {
        kind: [line["loss"] for line in read_log(tmp_path / f"{kind[0]}-{kind[1]}")]
        for kind in kinds
    }


def with_dropout(tiny_training, **training):
    values = tiny_training.model_dump(exclude_unset=True)
    values["model"] |= {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    values["training"] |= {"report_every": 1, "batch_size": 32, **training}
    values["optimizer"]["lr"] = 0.002
    return type(tiny_training)(**values)


def assert_equal(losses):
    expected = losses.pop((1, 1))
    for kind, found in losses.items():
        assert found == pytest.approx(expected, rel=1e-5), kind


@pytest.mark.slow
def test_replicas_and_parts_compute_what_one_device_does(tiny_records, tiny_training, tmp_path):
    config = with_dropout(tiny_training, steps=10)
    assert_equal(losses_of(tmp_path, tiny_records, config, [(1, 1), (2, 2)]))


@pytest.mark.parametrize("workers, replicas", [(1, 1), (1, 2), (1, 8), (2, 1), (2, 2), (4, 2)])
def test_every_step_has_the_same_records(tiny_records, workers, replicas):
    records = RecordFiles(tiny_records)
    shares = [
        training_dataset(records, 16, 3, first_step=4, worker=(worker, workers), replicas=replicas)
        .take(6 * replicas)
        .as_numpy_iterator()
        for worker in range(workers)
    ]
    for step in range(4, 10):
        rows = [next(share)["input_ids"] for share in shares for _ in range(replicas)]
        numbers = training_numbers(step, 16, len(records), 3)
        expected = decode_batch(records.read(numbers), records.info)["input_ids"]
        np.testing.assert_array_equal(np.concatenate(rows), expected)
