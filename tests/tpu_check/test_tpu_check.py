"""The check for TPUs, as far as it needs no compiler; and with it, where there is one."""

import os
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2, types_pb2

from data_pipeline.errors import InputError
from data_pipeline.reader.reader import training_dataset
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.tasks.small_tasks import SETTINGS
from tests.benchmarks.measure import in_new_process
from tests.keras_line import IS_KERAS_3
from tests.tpu_check import __main__ as command, compile_hlo
from tests.tpu_check.__main__ import fault_lines, table
from tests.tpu_check.check import Checked, check, compiler_versions
from tests.tpu_check.program import Program, TaskProgram
from tests.tpu_check.replica import fake_tpu_strategy
from tests.tpu_check.trace import check_step, find_faults, read_kernels

traces = pytest.mark.skipif(IS_KERAS_3, reason="TPUs have TensorFlow 2.15")
MODEL = {
    "size": "albert-tiny", "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64,
    "embedding_size": 16, "num_hidden_layers": 1, "max_position_embeddings": 64,
}  # fmt: skip
FIELDS = {"model": MODEL, "batch": 4, "sequence_length": 32, "vocab_size": 100, "replicas": 2}
TRACED = {"faults": [], "all_reduces": 48}
COMPILED = {
    "outcome": "compiled",
    "seconds": 65.2,
    "gib": 8.117,
    "tflop": 9.432,
    "all_reduces": 3,
    "products": {"bf16": 303, "f32": 2},
}


def small(kind, **fields):
    return TaskProgram(kind=kind, **FIELDS | fields)


def prints(features):
    tf.print("loss", features["example_weights"])
    return tf.reduce_sum(features["example_weights"])


def has_no_fixed_shape(features):
    return tf.boolean_mask(features["example_weights"], features["example_weights"] > 0)


def traced(*programs):
    """Returns the summaries of programs, and of the two wrong functions.

    Call it in a process of its own, which divides its devices once.
    """
    strategy, found = fake_tpu_strategy(2, 2), []
    for program in programs:
        with strategy.scope():
            function = program.replica_function()
        summary, proto = check_step(strategy, function, program.features())
        trained = [] if program.about[1:] else function.__self__.trained_weights
        found.append(summary | {"has_hlo": proto is not None, "weights": len(trained)})
    features = Program(batch=4).features()
    return found + [check_step(strategy, one, features)[0] for one in (prints, has_no_fixed_shape)]


@pytest.mark.slow
@traces
def test_steps_consist_of_operations_of_a_tpu_with_fixed_shapes():
    predicts = small("spans_or_none", predicts=True)  # the head with the most operations
    programs = Program(**FIELDS, recompute=True), predicts
    step, predicting, printing, not_fixed = in_new_process(traced, *programs)
    for found in (step, predicting):
        assert found["faults"] == [] and found["has_hlo"] and found["dynamic_shapes"] == 0
    # Each gradient is summed once, beside a few losses and counts.
    assert step["weights"] <= step["all_reduces"] < 2 * step["weights"]
    assert step["variables"] >= 3 * step["weights"]  # and both moments
    assert predicting["all_reduces"] == predicting["variables"] == predicting["barriers"] == 0
    assert step["barriers"] > 0
    assert any("`PrintV2` has no TPU kernel" in fault for fault in printing["faults"])
    assert any("no fixed shape" in fault for fault in not_fixed["faults"])


@pytest.mark.slow
@traces
def test_all_kinds_are_learnt_and_predicted():
    programs = [small(kind, predicts=each) for kind in SETTINGS for each in (False, True)]
    sparse = {"attention": "block-sparse", "attention_block_size": 2, "attention_random_blocks": 1}
    programs += [
        Program(**FIELDS | {"model": MODEL | sparse, "sequence_length": 16}),
        small("choice"),
        small("choice", accumulation=2),
    ]
    *found, whole, parts, _, _ = in_new_process(traced, *programs)
    for each in [*found, whole, parts]:
        assert each["faults"] == [] and each["has_hlo"] and each["dynamic_shapes"] == 0
    assert parts["all_reduces"] == whole["all_reduces"]


def test_features_are_those_of_the_reader(tiny_records):
    records = RecordFiles(tiny_records)
    program = Program(batch=4, sequence_length=records.info.max_seq_length)
    read = training_dataset(records, 4, seed=1).element_spec
    assert program.features() == {
        name: (spec.dtype.name, tuple(spec.shape)) for name, spec in read.items()
    }


def test_operations_are_looked_up_by_type_in_the_functions_that_are_called():
    kernels = read_kernels()
    assert len(kernels) == 516 and "bfloat16" in kernels["BatchMatMulV2"]["T"]
    graph = graph_pb2.GraphDef()
    for name in ("called", "forgotten"):
        function = graph.library.function.add()
        function.signature.name = name
        node = function.node_def.add(name=f"{name}_norm", op="CheckNumerics")
        node.attr["T"].type = types_pb2.DT_INT32
    graph.node.add(name="loop", op="While").attr["body"].func.name = "called"
    fault = "`CheckNumerics` has no TPU kernel for T=int32 (node `called_norm`)"
    assert find_faults(graph, kernels) == [fault]


def test_products_count_by_what_they_multiply():
    text = """
  %param_0.1 = bf16[32,128]{1,0:T(8,128)(2,1)} parameter(0)
  ROOT %convolution.5 = f32[32,512]{1,0} convolution(%param_0.1, %param_1), dim_labels=bf_io->bf
  %copy.1 = f32[2]{0} copy(%argument), metadata={op_name="convolution(all-reduce(x)"}
  %dot.1 = f32[2,2]{1,0} dot(f32[2,4]{1,0} %a, f32[4,2]{1,0} %b)
  %all-reduce.3 = (f32[300,64]{1,0:T(8,128)}, f32[], /*index=2*/f32[2]{0}) all-reduce(%x, %y, %z)
"""
    counts = compile_hlo.count_instructions(text)
    assert counts == {"all_reduces": 1, "products": {"bf16": 1, "f32": 1}}


def test_the_table_tells_what_fits_and_each_fault_once():
    too_large = compile_hlo.failure("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm.")
    rows = table(
        [
            Checked(Program(), "v3-8", TRACED, COMPILED),
            Checked(Program(batch=128), "v3-8", TRACED, too_large),
            Checked(Program(recompute=True), "v2-8", TRACED, None),
        ]
    )
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert cells[2] == [
        *("albert-base", "512", "32", "256", "v3-8", "yes", "8.12 of 16", "9.43"),
        *("3 of 48", "303 / 2", "65 s"),
    ]
    assert cells[3][5:7] == ["no", "more than 16"]
    assert (cells[4][0], cells[4][5]) == ("albert-base, recomputed", "not compiled")
    wrong = Checked(Program(), "v3-8", TRACED, compile_hlo.failure("INTERNAL: no lowering"))
    assert list(fault_lines([wrong, wrong])) == ["albert-base, v3-8: INTERNAL: no lowering"]


def test_values_that_are_not_valid_are_told_before_any_work(tmp_path, capsys):
    out = ["--out", str(tmp_path / "out")]
    for words, message in (
        (["--batch", "0"], "`batch`"),
        (["--batch", "4", "--accumulation", "3"], "must be a multiple of `accumulation`"),
        (["--predict"], "`--predict` is for a `--kind` of task"),
        (["--kind", "spans", "--predict", "--recompute"], "nothing is accumulated or kept"),
    ):
        assert command.main([*words, *out]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="`make check-tpu` creates one"):
        compiler_versions(sys.executable)  # has TensorFlow, not libtpu


@pytest.mark.slow
@traces
def test_a_small_step_compiles_for_two_generations(tmp_path):
    beside = Path(__file__).parents[2] / ".venv-tpu" / "bin" / "python"
    compiler = Path(os.environ.get("ALBERT_KERAS_TPU_COMPILER", beside))
    if not compiler.exists():
        pytest.skip(f"nothing at {compiler} that compiles for TPUs: `make check-tpu` makes it")
    program = {"model": {"size": "albert-tiny"}, "batch": 4, "sequence_length": 64}
    small, large = check([program], ["v3-8", "v4-8"], tmp_path, compiler)
    assert small.faults == large.faults == []
    assert small.compiled["outcome"] == large.compiled["outcome"] == "compiled"
    assert small.compiled["products"]["bf16"] > 50
    assert 1 <= small.compiled["all_reduces"] < small.traced["all_reduces"]
    assert 0 < large.compiled["gib"] < 1
