"""A batch for a single device, and what feeds a TPU of other hosts."""

import pytest
import tensorflow as tf

from albert_keras.training.batches import HostFed, is_remote_tpu


def test_one_replica_gets_the_whole_batch():
    rows = tf.range(16)
    dataset = tf.data.Dataset.from_tensor_slices({"row": rows}).batch(8, drop_remainder=True)
    fed = HostFed(tf.distribute.get_strategy(), dataset)
    assert fed.element_spec["row"].shape == (8,)
    for _ in range(2):  # each pass starts at the first batch
        assert next(iter(fed))["row"].numpy().tolist() == list(range(8))


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
