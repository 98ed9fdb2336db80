"""The profile of a step tells operations only, and each in its group."""

import pytest

from albert_keras.benchmarks.profile import (
    _type_of,
    benchmark_profile,
    group_of,
    profile_lines,
)


@pytest.mark.parametrize(
    "event, kind",
    [
        ("bert/attention_0_0/MatMul_3:_MklMatMul", "_MklMatMul"),
        ("ExecutorState::ProcessAsync::Start", "XlaLaunch"),
        ("ExecutorState::Process", None),
        ("EagerLocalExecute: __inference_run_5707", None),
        ("ParallelFor", None),
    ],
)
def test_an_operation_is_told_from_what_runs_it(event, kind):
    assert _type_of(event) == kind


@pytest.mark.parametrize(
    "kind, group",
    [
        ("_MklNativeFusedMatMul", "products"),
        ("_MklBatchMatMulV2", "products"),
        ("XlaLaunch", "kernels compiled by XLA"),
        ("_MklTranspose", "transposing and copying"),
        ("AddN", "sums"),
        ("Mul", "other element-wise"),
    ],
)
def test_operations_fall_into_groups(kind, group):
    assert group_of(kind) == group


@pytest.mark.slow
def test_a_step_is_profiled():
    result = benchmark_profile("1x64", batch_size=2, max_seq_length=16, precision="float32")
    kinds = {group_of(kind) for kind, _, _ in result["operations"]}
    assert {"products", "kernels compiled by XLA"} <= kinds
    lines = list(profile_lines(result))
    assert any(line.split()[:1] == ["products"] for line in lines)
