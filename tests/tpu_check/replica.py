"""The part of a training step that a TPU executes, traced on a machine without one.

The step is traced under a `TPUStrategy` on a made-up topology, which can trace but not run.
Everything but the hardware is TensorFlow's own, so its graph is the one a TPU would get: variables
per replica, `TPUReplicatedInput`, one `CrossReplicaSum` per sum over replicas. The part of the TPU
has nodes marked `_tpu_replicate`, between `TPUReplicatedInput` and `TPUReplicatedOutput` nodes.

Uses private names of TensorFlow 2.15.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.client import session
from tensorflow.python.distribute.cluster_resolver import TPUClusterResolver
from tensorflow.python.tpu import tpu_strategy_util, tpu_system_metadata
from tensorflow.python.tpu.topology import Topology

_HOST = "/job:localhost/replica:0/task:0/device:"
_MARK = "_tpu_replicate"
#: Marked, but around the cluster and not in it.
_AROUND = {"TPUReplicateMetadata", "TPUCompilationResult", "TPUReplicatedOutput"}
#: Nodes between the cluster and the source of an input.
_PASS_THROUGH = {"TPUReplicatedInput", "Identity", "PlaceholderWithDefault"}


def fake_tpu_strategy(replicas: int, replicas_per_chip: int) -> tf.distribute.TPUStrategy:
    """Returns a strategy whose variables are on logical devices of the CPU.

    Call it before TensorFlow has run anything: devices cannot be divided afterwards. There are 2
    replicas per chip where each core of a chip is a replica of its own.
    """
    tf.config.set_visible_devices([], "GPU")
    cpu = tf.config.list_physical_devices("CPU")[0]
    devices = [tf.config.LogicalDeviceConfiguration()] * replicas
    tf.config.set_logical_device_configuration(cpu, devices)
    tf.config.list_logical_devices()
    chips = replicas // replicas_per_chip
    width = 2 if chips > 1 else 1
    height = chips // width
    coordinates = [
        [x, y, 0, core]
        for y in range(height)
        for x in range(width)
        for core in range(replicas_per_chip)
    ]
    topology = Topology(
        mesh_shape=[width, height, 1, replicas_per_chip],
        device_coordinates=np.array([coordinates], dtype=np.int32),
    )
    # What `initialize_tpu_system` would set.
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


class _Resolver(TPUClusterResolver):
    """Describes a TPU as its real namesake does, which asks the machine."""

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


class Cluster(NamedTuple):
    """What one replica executes."""

    #: The nodes, and the functions they call. Tensors named `<name>:0` of `inputs` are its inputs,
    #: and have no nodes.
    graph: graph_pb2.GraphDef
    #: tf.TensorSpec (an argument of the step), tf.Tensor of dtype resource (a variable's handle) or
    #: np.ndarray (a constant).
    inputs: dict[str, Any]
    outputs: list[str]  #: Tensors of the graph that leave it.


def trace_cluster(
    strategy: tf.distribute.TPUStrategy, replica_step: Callable, features: dict
) -> Cluster:
    """Traces a step under a strategy and extracts what its first replica executes.

    The step takes a dict of tensors, described by `features` as in `Program.features`; it returns
    tensors, in any nesting.
    """

    @tf.function
    def step(values):
        results = strategy.run(replica_step, args=(values,))
        return tf.nest.map_structure(
            lambda result: strategy.experimental_local_results(result)[0], results
        )

    specs = {name: tf.TensorSpec(shape, dtype) for name, (dtype, shape) in features.items()}
    return _extract_cluster(step.get_concrete_function(specs))


def _extract_cluster(function) -> Cluster:
    """Returns the first replica's Cluster of a ConcreteFunction that calls `TPUStrategy.run` once.

    ValueError if there is not one cluster, or one of its inputs is computed on the host.
    """
    definition = function.graph.as_graph_def()
    nodes = {node.name: node for node in definition.node}
    clusters = {node.attr[_MARK].s for node in definition.node if _MARK in node.attr}
    if len(clusters) != 1:
        raise ValueError(f"A step must have one TPU cluster. Received: {len(clusters)}.")
    graph = graph_pb2.GraphDef(versions=definition.versions, library=definition.library)
    sources = {}
    for node in definition.node:
        if not _is_inside(node):
            continue
        kept = graph.node.add()
        kept.CopyFrom(node)
        kept.device = ""
        for attribute in (_MARK, "_has_manual_control_dependencies"):
            kept.attr.pop(attribute, None)
        del kept.input[:]
        for tensor in node.input:
            producer = nodes[_node_of(tensor)]
            if _is_inside(producer):
                kept.input.append(tensor)
            elif not tensor.startswith("^"):  # the host has run what comes first
                source = _source_of(producer, nodes)
                sources[source.name] = source
                kept.input.append(f"{source.name}:0")
    outputs = [
        node.input[0] if ":" in node.input[0] else f"{node.input[0]}:0"
        for node in definition.node
        if node.op == "TPUReplicatedOutput"
    ]
    captured = {inner.op.name: outer for outer, inner in function.graph.captures}
    inputs = {name: _value_of(node, captured) for name, node in sources.items()}
    return Cluster(graph, inputs, outputs)


def _is_inside(node):
    return _MARK in node.attr and node.op not in _AROUND


def _node_of(tensor):
    return tensor.removeprefix("^").split(":")[0]


def _source_of(node, nodes):
    while node.op in _PASS_THROUGH:
        node = nodes[_node_of(node.input[0])]  # input 0 of a TPUReplicatedInput is replica 0's
    return node


def _value_of(node, captured):
    if node.op == "Const":
        return tf.make_ndarray(node.attr["value"].tensor)
    if node.op != "Placeholder":
        raise ValueError(
            f"The inputs of a TPU cluster must be arguments, variables and constants. "
            f"Received: `{node.name}`, a {node.op} on the host."
        )
    if node.name not in captured:
        shape = tf.TensorShape(node.attr["shape"].shape)
        return tf.TensorSpec(shape, tf.dtypes.as_dtype(node.attr["dtype"].type))
    outer = captured[node.name]
    return outer if outer.dtype == tf.resource else outer.numpy()
