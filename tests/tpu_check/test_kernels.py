from tensorflow.core.framework import graph_pb2, types_pb2

from tests.tpu_check.trace import Fault, find_faults, read_kernels


def test_the_list_is_that_of_tensorflow_tpu():
    kernels = read_kernels()
    assert len(kernels) == 516
    assert kernels["CrossReplicaSum"] == {
        "T": {"bfloat16", "double", "float", "half", "int32", "uint32"}
    }
    assert "bfloat16" in kernels["BatchMatMulV2"]["T"]
    assert kernels["NoOp"] == {}
    assert "StringFormat" not in kernels


def test_types_are_looked_at_too():
    graph = graph_pb2.GraphDef()
    node = graph.node.add(name="norm", op="CheckNumerics")
    node.attr["T"].type = types_pb2.DT_INT32
    assert find_faults(graph, read_kernels()) == (
        1,
        [Fault("CheckNumerics", "norm", "has no TPU kernel for T=int32")],
    )


def test_functions_are_looked_into_but_only_those_called():
    graph = graph_pb2.GraphDef()
    for name in ("called", "forgotten"):
        function = graph.library.function.add()
        function.signature.name = name
        function.node_def.add(name=f"{name}_text", op="StringFormat")
    loop = graph.node.add(name="loop", op="While")
    loop.attr["body"].func.name = "called"
    operations, faults = find_faults(graph, read_kernels())
    assert operations == 2
    assert [str(fault) for fault in faults] == [
        "`StringFormat` has no TPU kernel (node `called_text`)"
    ]
