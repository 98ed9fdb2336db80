"""Every replica gets its rows of the batch."""

import subprocess
import sys

import pytest
import tensorflow as tf

from albert_keras.training.batches import HostFed, is_remote_tpu


def batches(batch_size):
    def batch(step):
        rows = step * batch_size + tf.range(batch_size, dtype=tf.int64)
        return {"row": rows, "ids": tf.repeat(rows[:, None], 3, axis=1)}

    return tf.data.Dataset.range(1000).map(batch)


def test_every_replica_gets_its_rows():
    # Devices can only be set up before TensorFlow starts.
    code = """
import tensorflow as tf
from tensorflow import keras
cpu = tf.config.list_physical_devices("CPU")[0]
devices = [tf.config.LogicalDeviceConfiguration()] * 4
tf.config.set_logical_device_configuration(cpu, devices)
from albert_keras.training.batches import HostFed
from tests.albert_keras.training.test_batches import batches
strategy = tf.distribute.MirroredStrategy([d.name for d in tf.config.list_logical_devices("CPU")])

def rows(features):
    replica = tf.distribute.get_replica_context().replica_id_in_sync_group
    return replica, features["row"], features["ids"][:, 2]

class Rows(keras.Model):
    def make_train_function(self, force=False):
        run = tf.function(lambda features: strategy.run(rows, args=(features,)))
        def train_function(batches):
            for values in zip(*map(strategy.experimental_local_results, run(next(batches)))):
                print(*[value.numpy().tolist() for value in values], sep=";")
            return {"loss": 0.0}
        self.train_function = train_function
        return train_function

with strategy.scope():
    model = Rows()
    model.compile("sgd")
model.fit(HostFed(strategy, batches(8)), steps_per_epoch=2, verbose=0)
"""
    environ = {"PYTHONPATH": ":".join(sys.path), "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    expected = []
    for step in (0, 1):
        for replica in range(4):
            first = step * 8 + replica * 2
            rows = list(range(first, first + 2))
            expected.append(f"{replica};{rows};{rows}")
    assert run.stdout.splitlines() == expected, run.stderr[-3000:]


def test_one_replica_gets_the_whole_batch():
    fed = HostFed(tf.distribute.get_strategy(), batches(8))
    first = next(iter(fed))
    assert first["row"].numpy().tolist() == list(range(8))
    assert fed.element_spec["ids"].shape == (8, 3)
    again = next(iter(fed))  # each pass starts at the first batch
    assert again["row"].numpy()[0] == 0


class TpuStrategy:
    """Stands in for `tf.distribute.TPUStrategy`, which cannot be made without a TPU."""

    def __init__(self, *worker_devices):
        self.extended = self
        self.worker_devices = worker_devices


@pytest.mark.parametrize(
    "devices, is_needed",
    [
        (["/job:localhost/replica:0/task:0/device:TPU:0"], False),
        ([f"/job:worker/replica:0/task:{host}/device:TPU:0" for host in range(4)], True),
    ],
)
def test_only_a_tpu_of_other_hosts_is_fed_from_here(devices, is_needed, monkeypatch):
    monkeypatch.setattr(tf.distribute, "TPUStrategy", TpuStrategy)
    assert is_remote_tpu(TpuStrategy(*devices)) is is_needed
    assert not is_remote_tpu(tf.distribute.get_strategy())
