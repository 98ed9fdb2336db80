"""Which operations a TPU can execute, and which of a step's it cannot.

`kernels.txt` is the list, with its source. In a program that a TPU gets, each operation needs a
kernel there; one without fails when the program is compiled, minutes into a run.
"""

from pathlib import Path
from typing import NamedTuple

from tensorflow.core.framework import types_pb2

LIST = Path(__file__).with_name("kernels.txt")


class Fault(NamedTuple):
    """An operation that a TPU cannot execute.

    Attributes:
        operation: str. Its type, for example "StringFormat".
        node: str. Its name in the graph.
        says: str. Completes "`StringFormat` ...".
    """

    operation: str
    node: str
    says: str

    def __str__(self):
        return f"`{self.operation}` {self.says} (node `{self.node}`)"


def read_kernels(path=LIST):
    """Reads the list of operations with a TPU kernel.

    Returns:
        dict from an operation to a dict from each type attribute to the frozenset of the types it
        may have, as str: "bfloat16", "float".
    """
    named, kernels = {}, {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
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


def find_faults(graph, kernels):
    """Looks at every operation of a graph and of the functions it calls.

    Args:
        graph: GraphDef.
        kernels: dict as of `read_kernels`.

    Returns:
        tuple. Number of different operations (int) and list of Fault.
    """
    functions = {function.signature.name: function for function in graph.library.function}
    faults, operations, seen = [], set(), set()
    waiting = [graph.node]
    while waiting:
        for node in waiting.pop():
            for name in _called(node, functions):
                if name not in seen:
                    seen.add(name)
                    waiting.append(functions[name].node_def)
            if node.op not in functions:
                operations.add(node.op)
                says = _what_is_wrong(node, kernels)
                if says:
                    faults.append(Fault(node.op, node.name, says))
    return len(operations), faults


def _called(node, functions):
    """Yields the functions a node refers to: a call, the body of a loop, both sides of an if."""
    names = [node.op]
    for value in node.attr.values():
        names += [value.func.name, *(function.name for function in value.list.func)]
    yield from (name for name in names if name in functions)


def _what_is_wrong(node, kernels):
    if node.op not in kernels:
        return "has no TPU kernel"
    for attribute, allowed in kernels[node.op].items():
        value = node.attr[attribute] if attribute in node.attr else None
        if value is None:
            continue
        for number in [value.type] if value.type else value.list.type:
            received = types_pb2.DataType.Name(number).removeprefix("DT_").lower()
            if received not in allowed:
                return f"has no TPU kernel for {attribute}={received}"
    return None
