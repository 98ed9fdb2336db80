"""One program, in a process of its own: traces it, checks its operations, lowers it to HLO.

A process divides its devices once, so it has one number of replicas. `kernels.txt` lists the
operations that a TPU can execute, with its source. An operation without a kernel there fails when
the program is compiled, minutes into a run.
"""

from collections.abc import Callable
from pathlib import Path

from tensorflow.core.framework import graph_pb2, types_pb2

from tests.tpu_check.lowering import lower
from tests.tpu_check.program import Program
from tests.tpu_check.replica import fake_tpu_strategy, trace_cluster

_KERNELS = Path(__file__).with_name("kernels.txt")


def trace_program(program: Program) -> tuple[dict, bytes | None]:
    """Traces a program, checks its operations and lowers it to HLO.

    Call it in a fresh process, see `fake_tpu_strategy`.

    Returns:
        dict with `faults`, a list of str, and the fields of Lowered except `proto`, if it could be
        lowered; and the HLO, if it could be.
    """
    strategy = fake_tpu_strategy(program.replicas, program.replicas_per_chip)
    with strategy.scope():
        function = program.replica_function()
    summary, proto = check_step(strategy, function, program.features())
    if program.recompute and proto is not None and not summary["barriers"]:
        summary["faults"].append(
            "`recompute` has no effect: without an XlaOptimizationBarrier the compiler merges the "
            "two computations and keeps the result in memory"
        )
    return summary, proto


def check_step(strategy, replica_step: Callable, features: dict) -> tuple[dict, bytes | None]:
    """As `trace_program`, for any function of a replica; arguments as for `trace_cluster`."""
    cluster = trace_cluster(strategy, replica_step, features)
    faults = find_faults(cluster.graph, read_kernels())
    if faults:
        return {"faults": faults}, None
    lowered = lower(cluster, strategy.num_replicas_in_sync)._asdict()
    proto = lowered.pop("proto")
    if lowered["dynamic_shapes"]:
        faults.append(f"{lowered['dynamic_shapes']} instructions have no fixed shape")
    return {"faults": faults, **lowered}, proto


def read_kernels() -> dict[str, dict[str, frozenset[str]]]:
    """Reads the operations with a TPU kernel, with the types that each type attribute may have."""
    named, kernels = {}, {}
    for line in _KERNELS.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        name, *values = line.split()
        if name.startswith("*"):
            named[name] = frozenset(values[0].split(","))
            continue
        attributes = dict(value.split("=") for value in values)
        kernels[name] = {
            attribute: named.get(types) or frozenset(types.split(","))
            for attribute, types in attributes.items()
        }
    return kernels


def find_faults(graph: graph_pb2.GraphDef, kernels: dict) -> list[str]:
    """Lists the operations of a graph, and of the functions it calls, without a TPU kernel."""
    functions = {function.signature.name: function for function in graph.library.function}
    faults, seen = [], set()
    waiting = [graph.node]
    while waiting:
        for node in waiting.pop():
            for name in _called(node, functions):
                if name not in seen:
                    seen.add(name)
                    waiting.append(functions[name].node_def)
            if node.op not in functions and (problem := _problem_of(node, kernels)):
                faults.append(f"`{node.op}` {problem} (node `{node.name}`)")
    return faults


def _called(node, functions):
    """Yields the functions a node refers to: a call, the body of a loop, both sides of an if."""
    names = [node.op]
    for value in node.attr.values():
        names += [value.func.name, *(function.name for function in value.list.func)]
    yield from (name for name in names if name in functions)


def _problem_of(node, kernels):
    if node.op not in kernels:
        return "has no TPU kernel"
    for attribute, allowed in kernels[node.op].items():
        if attribute not in node.attr:
            continue
        value = node.attr[attribute]
        for number in [value.type] if value.type else value.list.type:
            received = types_pb2.DataType.Name(number).removeprefix("DT_").lower()
            if received not in allowed:
                return f"has no TPU kernel for {attribute}={received}"
    return None
