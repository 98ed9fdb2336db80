"""The step through `TPUStrategy`, in one process, which can divide its devices once only."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json
import tensorflow as tf
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tests.tpu_check.replica import fake_tpu_strategy
from tests.tpu_check.program import Program
from tests.tpu_check.program import TaskProgram
from tests.tpu_check.trace import check_step
from albert_keras.training.build import build_pretraining

strategy = fake_tpu_strategy(2, 2)
model = {
    "size": "albert-tiny", "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64,
    "embedding_size": 16, "num_hidden_layers": 1, "max_position_embeddings": 64,
}
results = {}


def trace(name, step, program):
    results[name], proto = check_step(strategy, step, program.features())
    results[name]["has_hlo"] = proto is not None


program = Program(model=model, batch=4, sequence_length=16, vocab_size=100, replicas=2)
config = program.config()
with strategy.scope():
    step = build_pretraining(config, config.albert_config(100))
weights = step.trainable_variables
results["weights"] = len(weights)
results["kind"] = type(weights[0]).__name__
trace("step", step.train_step, program)
step.encoder.recompute = True
trace("recomputed_step", step.train_step, program)
step.encoder.recompute = False
for predicts in (False, True):
    task = TaskProgram(kind="spans_or_none", predicts=predicts, **program.model_dump())
    with strategy.scope():
        function = task.replica_function()
    trace("prediction" if predicts else "fine_tuning", function, task)


def shouts(features):
    tf.print("loss", features["example_weights"])
    return tf.reduce_sum(features["example_weights"])


def reads_text(features):
    return tf.strings.length(tf.strings.as_string(features["input_ids"]))


def sums_in_a_loop(features):
    def body(number, total):
        part = features["example_weights"][number]
        return number + 1, total + tf.distribute.get_replica_context().all_reduce("SUM", part)

    return tf.while_loop(lambda number, _: number < 4, body, (0, tf.zeros([])))[1]


def has_no_fixed_shape(features):
    return tf.boolean_mask(features["example_weights"], features["example_weights"] > 0)


def computes_anew(features):
    weights = features["example_weights"]
    again = gen_xla_ops.xla_optimization_barrier([weights])[0]
    return tf.exp(weights) + tf.exp(again)


for other in (shouts, reads_text, sums_in_a_loop, has_no_fixed_shape, computes_anew):
    trace(other.__name__, other, program)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def traced():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_weights_are_the_strategy_s(traced):
    assert traced["kind"].startswith("TPU")


def test_every_operation_of_the_step_has_a_tpu_kernel(traced):
    assert traced["step"]["faults"] == []
    assert traced["step"]["operations"] > 40


def test_all_shapes_of_the_step_are_fixed(traced):
    assert traced["step"]["has_hlo"]
    assert traced["step"]["dynamic_shapes"] == 0


def test_each_gradient_is_summed_over_the_replicas_once(traced):
    """Beside the gradients there are a few sums of losses and counts."""
    weights = traced["weights"]
    assert weights <= traced["step"]["all_reduces"] < 2 * weights
    assert traced["step"]["all_reduces_in_loops"] == 0


def test_weights_and_both_moments_are_changed_in_place(traced):
    assert traced["step"]["variables"] >= 3 * traced["weights"]


def test_a_print_is_found(traced):
    assert any("`PrintV2` has no TPU kernel" in fault for fault in traced["shouts"]["faults"])
    assert not traced["shouts"]["has_hlo"]


def test_operations_on_text_are_found(traced):
    faults = " ".join(traced["reads_text"]["faults"])
    assert "`AsString` has no TPU kernel" in faults and "`StringLength`" in faults


def test_a_sum_over_replicas_within_a_loop_is_told_apart(traced):
    assert traced["sums_in_a_loop"]["faults"] == []
    assert traced["sums_in_a_loop"]["loops"] == 1
    assert traced["sums_in_a_loop"]["all_reduces_in_loops"] == 1


def test_a_shape_that_depends_on_values_is_found(traced):
    assert any("no fixed shape" in fault for fault in traced["has_no_fixed_shape"]["faults"])


def test_barriers_against_merging_are_counted(traced):
    assert traced["computes_anew"]["barriers"] == 1
    assert traced["step"]["barriers"] == 0


def test_blocks_computed_again_stand_behind_a_barrier(traced):
    assert traced["step"]["barriers"] == 0
    assert traced["recomputed_step"]["barriers"] > 0 and not traced["recomputed_step"]["faults"]


def test_the_head_with_the_most_operations_is_learnt_and_predicted(traced):
    """The other kinds of tasks are in `test_task_program.py`, where they are slow."""
    for name in ("fine_tuning", "prediction"):
        assert traced[name]["faults"] == [] and traced[name]["has_hlo"]
        assert traced[name]["dynamic_shapes"] == 0
    assert traced["fine_tuning"]["all_reduces_in_loops"] == 0
    assert traced["prediction"]["all_reduces"] == traced["prediction"]["variables"] == 0
