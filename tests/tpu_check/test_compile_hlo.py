"""The script that compiles, as far as it needs no compiler; and with it, where there is one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tpu_check import compile_hlo
from tests.tpu_check.check import check

COMPILED = """
%fused_computation (param_0: bf16[32,128], param_1: bf16[128,512]) -> f32[32,512] {
  %param_0.1 = bf16[32,128]{1,0:T(8,128)(2,1)} parameter(0)
  %param_1 = f32[128,512]{1,0:T(8,128)S(1)} parameter(1)
  ROOT %convolution.5 = f32[32,512]{1,0} convolution(%param_0.1, %param_1), dim_labels=bf_io->bf
}
ENTRY %main {
  %copy.1 = f32[2]{0} copy(%argument), metadata={op_name="convolution(all-reduce(x)"}
  %dot.1 = f32[2,2]{1,0} dot(f32[2,4]{1,0} %a, f32[4,2]{1,0} %b)
  %all-reduce.3 = (f32[300,64]{1,0:T(8,128)}, f32[], /*index=2*/f32[2]{0}) all-reduce(%x, %y, %z)
  %all-reduce.4 = f32[] all-reduce(%w), to_apply=%sum
  %get-tuple-element.1 = f32[] get-tuple-element(%all-reduce.3), index=1
}
"""


def test_products_count_by_what_they_multiply():
    counts = compile_hlo.count_instructions(COMPILED)
    assert counts == {"all_reduces": 2, "products": {"bf16": 1, "f32": 1}}


def test_too_little_memory_is_no_failure():
    message = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 19.49G of 15.48G hbm"
    assert compile_hlo.failure(message) == {
        "outcome": "out of memory",
        "message": message,
        "used_gib": 19.49,
        "available_gib": 15.48,
    }
    assert compile_hlo.failure("INTERNAL: no lowering")["outcome"] == "failed"


@pytest.fixture
def compiler():
    """Returns the Python of the environment that compiles; skips where there is none."""
    beside = Path(__file__).parents[3] / ".venv-tpu" / "bin" / "python"
    path = Path(os.environ.get("ALBERT_KERAS_TPU_COMPILER", beside))
    if not path.exists():
        pytest.skip(f"nothing at {path} that compiles for TPUs: `make check-tpu` makes it")
    return path


@pytest.mark.slow
def test_a_small_step_compiles_for_two_generations(compiler, tmp_path):
    program = {"model": {"size": "albert-tiny"}, "batch": 4, "sequence_length": 64}
    small, large = check([program], ["v3-8", "v4-8"], tmp_path, compiler)
    assert small.faults == large.faults == []
    assert small.compiled["outcome"] == large.compiled["outcome"] == "compiled"
    assert small.compiled["products"]["bf16"] > 50
    assert 1 <= small.compiled["all_reduces"] < small.traced["all_reduces"]
    assert 0 < large.compiled["gib"] < 1


@pytest.mark.slow
def test_a_step_that_is_too_large_is_told_from_one_that_is_wrong(compiler, tmp_path):
    """64 GiB asked of a TPU v3."""
    code = """
import sys
import tensorflow as tf
step = tf.function(lambda x: tf.sort(x + tf.reverse(x, [0])), jit_compile=True)
translate = step.experimental_get_compiler_ir(tf.TensorSpec([1 << 33]))
open(sys.argv[1], "wb").write(translate(stage="hlo_serialized"))
"""
    subprocess.run([sys.executable, "-c", code, tmp_path / "step.hlo"], check=True)
    (tmp_path / "wrong.hlo").write_bytes(b"no HLO")
    target = {"layout": "v3:2x2", "replicas": 8, "options": {}}
    command = [compiler, compile_hlo.__file__]
    arguments = [tmp_path / "step.hlo", tmp_path / "result.json", json.dumps(target)]
    subprocess.run([*command, *arguments], check=True)
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["outcome"] == "out of memory"
    assert result["available_gib"] < 16 < result["used_gib"]
    arguments[0] = tmp_path / "wrong.hlo"
    assert subprocess.run([*command, *arguments], capture_output=True).returncode != 0
