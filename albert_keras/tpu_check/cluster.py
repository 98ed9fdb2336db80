"""The part of a traced step that a TPU executes, as a graph of its own.

`TPUStrategy.run` leaves it in the step's graph, its nodes marked `_tpu_replicate`, between
`TPUReplicatedInput` and `TPUReplicatedOutput` nodes.
"""

from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

_MARK = "_tpu_replicate"
#: Marked, but about the cluster and not in it.
_AROUND = {"TPUReplicateMetadata", "TPUCompilationResult", "TPUReplicatedOutput"}
#: What stands between the cluster and the value it takes in.
_PASSES_ON = {"TPUReplicatedInput", "Identity", "PlaceholderWithDefault"}


class Cluster(NamedTuple):
    """What one replica executes.

    Attributes:
        graph: GraphDef. The nodes, and the functions they call. It takes its inputs from
            `inputs`, whose tensors it calls `<name>:0` without having such nodes.
        inputs: dict from str to tf.TensorSpec (an argument of the step), tf.Tensor of dtype
            resource (a variable's handle) or np.ndarray (a constant).
        outputs: list of str. Tensors of the graph that leave it.
    """

    graph: graph_pb2.GraphDef
    inputs: dict[str, Any]
    outputs: list[str]


def trace_cluster(strategy, replica_step, features):
    """Traces a step under a strategy and takes out what its first replica executes.

    Args:
        strategy: tf.distribute.TPUStrategy.
        replica_step: callable. Takes a dict of tensors; returns tensors, nested at will.
        features: dict as of `Program.features`. What each replica gets.

    Returns:
        Cluster.
    """

    @tf.function
    def step(values):
        results = strategy.run(replica_step, args=(values,))
        return tf.nest.map_structure(
            lambda result: strategy.experimental_local_results(result)[0], results
        )

    specs = {name: tf.TensorSpec(shape, dtype) for name, (dtype, shape) in features.items()}
    return take_cluster(step.get_concrete_function(specs))


def take_cluster(function):
    """Takes the cluster out of a traced function that calls `TPUStrategy.run` once.

    Args:
        function: tf.types.experimental.ConcreteFunction.

    Returns:
        Cluster. Of the first replica.

    Raises:
        ValueError: If there is not one cluster, or it takes in a value computed on the host.
    """
    definition = function.graph.as_graph_def()
    nodes = {node.name: node for node in definition.node}
    clusters = {node.attr[_MARK].s for node in definition.node if _MARK in node.attr}
    if len(clusters) != 1:
        raise ValueError(f"A step should have one TPU cluster. Received: {len(clusters)}.")
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
            elif not tensor.startswith("^"):  # what comes first on the host has come first
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
    while node.op in _PASSES_ON:
        node = nodes[_node_of(node.input[0])]  # input 0 of a TPUReplicatedInput is replica 0's
    return node


def _value_of(node, captured):
    if node.op == "Const":
        return tf.make_ndarray(node.attr["value"].tensor)
    if node.op != "Placeholder":
        raise ValueError(
            f"A TPU cluster should take in arguments, variables and constants. "
            f"Received: `{node.name}`, a {node.op} on the host."
        )
    if node.name not in captured:
        shape = tf.TensorShape(node.attr["shape"].shape)
        return tf.TensorSpec(shape, tf.dtypes.as_dtype(node.attr["dtype"].type))
    outer = captured[node.name]
    return outer if outer.dtype == tf.resource else outer.numpy()
