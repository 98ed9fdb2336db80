"""The graph of a replica, lowered to HLO, the language of the TPU's compiler."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.framework import graph_pb2, types_pb2
from tensorflow.python.eager import context

from tests.tpu_check.replica import Cluster

#: Suffix of the names of functions that can be lowered without a TPU.
_CHANGED = "_translatable"


class Lowered(NamedTuple):
    """A program in HLO, not optimised yet."""

    proto: bytes  #: A serialised HloModuleProto.
    all_reduces: int  #: Sums over the replicas.
    dynamic_shapes: int  #: Instructions whose result has no fixed shape.
    barriers: int  #: Points across which the compiler merges and moves nothing.
    variables: int  #: Inputs that are updated in place.


def lower(cluster: Cluster, replicas: int) -> Lowered:
    """Lowers a Cluster to HLO with TensorFlow's own lowering for CPUs, with sums over `replicas`.

    Raises:
        ValueError: If an operation cannot be lowered.
    """
    arguments = {
        name: value for name, value in cluster.inputs.items() if isinstance(value, tf.TensorSpec)
    }

    replica = _with_collectives(cluster.graph, replicas)
    for function in replica.library.function:
        context.context().add_function_def(function)

    @tf.function(jit_compile=True, autograph=False)
    def step(values):
        graph = tf.compat.v1.get_default_graph()
        inputs = {}
        for name, value in cluster.inputs.items():
            if name in values:
                inputs[f"{name}:0"] = values[name]
            elif tf.is_tensor(value):
                inputs[f"{name}:0"] = graph.capture(value)
            else:
                inputs[f"{name}:0"] = tf.constant(value)
        return tf.graph_util.import_graph_def(
            replica, input_map=inputs, return_elements=cluster.outputs, name="replica"
        )

    examples = {name: tf.zeros(spec.shape, spec.dtype) for name, spec in arguments.items()}
    translate = step.experimental_get_compiler_ir(examples)
    return _lowered(hlo_pb2.HloModuleProto.FromString(translate(stage="hlo_serialized")))


def _with_collectives(graph, replicas):
    """Replaces `CrossReplicaSum`, which TensorFlow cannot lower without a TPU."""
    graph = graph_pb2.GraphDef.FromString(graph.SerializeToString())
    numbers = itertools.count(1)
    _replace_sums(graph.node, "", replicas, numbers)
    names = {function.signature.name for function in graph.library.function}
    _rename_calls(graph.node, names)
    for function in graph.library.function:
        _replace_sums(function.node_def, "output:", replicas, numbers)
        _rename_calls(function.node_def, names)
        function.signature.name += _CHANGED
    return graph


def _rename_calls(nodes, names):
    """Renames functions: TensorFlow would take the traced ones with equal names instead."""
    for node in nodes:
        if node.op in names:
            node.op += _CHANGED
        for value in node.attr.values():
            for function in [value.func, *value.list.func]:
                if function.name in names:
                    function.name += _CHANGED


def _replace_sums(nodes, output: str, replicas: int, numbers: Iterator[int]):
    """Replaces each sum by `CollectiveReduceV2`, which becomes the same all-reduce.

    `nodes` are the nodes of a graph or a function, in which a constant's tensor has the name
    "name:<output>0". Each sum of a program has its own number.
    """
    for node in [node for node in nodes if node.op == "CrossReplicaSum"]:
        value, _, *controls = node.input  # the second input lists the replicas: all
        kind = node.attr["T"].type
        sizes = {"size": replicas, "key": 1, "number": next(numbers)}
        for name, size in sizes.items():
            constant = nodes.add(name=f"{node.name}/{name}", op="Const")
            constant.attr["dtype"].type = types_pb2.DT_INT32
            constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(size, tf.int32))
        reduce = nodes.add(name=f"{node.name}/reduce", op="CollectiveReduceV2")
        reduce.input.extend([value, *(f"{node.name}/{name}:{output}0" for name in sizes)])
        reduce.input.extend(controls)
        reduce.attr["T"].type = kind
        reduce.attr["merge_op"].s = b"Add"
        reduce.attr["final_op"].s = b"Id"
        reduce.attr["communication_hint"].s = b"auto"
        reduce.attr["timeout_seconds"].f = 0
        reduce.attr["is_stateless"].b = False
        reduce.attr["Nordering_token"].i = 0
        reduce.attr["max_subdivs_per_device"].i = -1
        # The node keeps its name and the name of its output, which others refer to.
        node.ClearField("attr")
        node.op = "Identity"
        node.attr["T"].type = kind
        del node.input[:]
        node.input.append(f"{reduce.name}:{'data:' if output else ''}0")


def _lowered(module):
    instructions = [
        instruction for part in module.computations for instruction in part.instructions
    ]
    for instruction in instructions:
        # TensorFlow adds a copy for each variable it changes. Later compilers do not read this
        # instruction; a reshape to the same shape is equivalent.
        if instruction.opcode == "copy":
            instruction.opcode = "reshape"
    opcodes = [instruction.opcode for instruction in instructions]
    return Lowered(
        proto=module.SerializeToString(deterministic=True),
        all_reduces=opcodes.count("all-reduce"),
        dynamic_shapes=sum(any(item.shape.is_dynamic_dimension) for item in instructions),
        barriers=opcodes.count("opt-barrier"),
        variables=len(module.input_output_alias.entries),
    )
