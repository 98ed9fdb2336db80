"""A `TPUStrategy` on a made-up topology: it traces training steps, and can run none.

Everything but the hardware is TensorFlow's own, so the graph of a step is the one a TPU would get:
variables per replica, `TPUReplicatedInput`, one `CrossReplicaSum` per sum over replicas. Rests on
private names of TensorFlow 2.15.
"""

import numpy as np
import tensorflow as tf
from tensorflow.python.client import session
from tensorflow.python.distribute.cluster_resolver import TPUClusterResolver
from tensorflow.python.tpu import tpu_strategy_util, tpu_system_metadata
from tensorflow.python.tpu.topology import Topology

_HOST = "/job:localhost/replica:0/task:0/device:"


def fake_tpu_strategy(replicas, replicas_per_chip):
    """Makes the strategy; its variables live on as many logical devices of the CPU.

    Call it before TensorFlow has run anything: devices cannot be divided afterwards.

    Args:
        replicas: int.
        replicas_per_chip: int. 2 where each core of a chip is a replica of its own.

    Returns:
        tf.distribute.TPUStrategy.
    """
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * replicas
    tf.config.set_logical_device_configuration(cpu, devices)
    tf.config.list_logical_devices()
    topology = _topology(replicas, replicas_per_chip)
    # What `initialize_tpu_system` would leave behind.
    tpu_strategy_util._INITIALIZED_TPU_SYSTEMS[""] = topology
    strategy = tf.distribute.TPUStrategy(_Resolver(topology, replicas))
    # Packed variables would be one handle for all replicas, on a device that does not exist.
    strategy._enable_packed_variable_in_eager_mode = False
    extended = strategy.extended
    extended._tpu_devices = np.array(
        [[f"{_HOST}CPU:{number}"] for number in range(replicas)], dtype=object
    )
    extended._host_device = f"{_HOST}CPU:0"
    return strategy


def _topology(replicas, replicas_per_chip):
    chips = replicas // replicas_per_chip
    width = 2 if chips > 1 else 1
    height = chips // width
    places = [
        [x, y, 0, core]
        for y in range(height)
        for x in range(width)
        for core in range(replicas_per_chip)
    ]
    return Topology(
        mesh_shape=[width, height, 1, replicas_per_chip],
        device_coordinates=np.array([places], dtype=np.int32),
    )


class _Resolver(TPUClusterResolver):
    """Answers for a TPU what its real namesake asks the machine."""

    environment = ""
    task_type = None
    task_id = None

    def __init__(self, topology, replicas):
        self._tpu = "local"
        self._topology = topology
        self._replicas = replicas

    def master(self, task_type=None, task_id=None, rpc_layer=None):
        return ""

    def get_master(self):
        return ""

    def get_job_name(self):
        return "localhost"

    def cluster_spec(self):
        return None

    def num_accelerators(self, task_type=None, task_id=None, config_proto=None):
        return {"TPU": self._replicas}

    def get_tpu_system_metadata(self):
        names = [("TPU", number) for number in range(self._replicas)]
        names += [("TPU_SYSTEM", 0), ("CPU", 0)]
        devices = [
            session._DeviceAttributes(f"{_HOST}{kind}:{number}", kind, 1 << 34, 1)
            for kind, number in names
        ]
        return tpu_system_metadata.TPUSystemMetadata(
            num_cores=self._replicas,
            num_hosts=1,
            num_of_cores_per_host=self._replicas,
            topology=self._topology,
            devices=devices,
        )
