"""Fine-tuning and prediction are checked as a run would have them."""

import json
import subprocess
import sys

import pytest
import tensorflow as tf

from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.kinds import KINDS
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.small_tasks import make_examples, make_task
from tests.tpu_check.check import Checked
from tests.tpu_check.program import Program, TaskProgram, program_of
from tests.tpu_check.report import table

#: Traces programs, one after another.
SCRIPT = """
import json, sys
from tests.tpu_check.replica import fake_tpu_strategy
from tests.tpu_check.program import program_of
from tests.tpu_check.trace import check_step

strategy = fake_tpu_strategy(2, 2)
for fields in json.loads(sys.argv[1]):
    program = program_of(fields)
    with strategy.scope():
        function = program.replica_function()
        predicts = fields.get("predicts", False)
        weights = len(function.__self__.trained_weights) if not predicts else 0
    summary, proto = check_step(strategy, function, program.features())
    print(json.dumps(summary | {"has_hlo": proto is not None, "weights": weights}))
"""
MODEL = {
    "size": "albert-tiny", "hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64,
    "embedding_size": 16, "num_hidden_layers": 1, "max_position_embeddings": 64,
}  # fmt: skip


def small(kind, **fields):
    fields = {"model": MODEL, "batch": 4, "sequence_length": 32, "vocab_size": 100} | fields
    return TaskProgram(kind=kind, replicas=2, **fields)


def traced(*programs):
    """Traces programs in a process of their own: list of dict."""
    fields = [program.model_dump(exclude_unset=True) for program in programs]
    command = [sys.executable, "-c", SCRIPT, json.dumps(fields)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()[-len(programs) :]]


@pytest.mark.parametrize("kind", KINDS)
def test_features_are_those_of_a_fine_tuning(kind, tiny_corpus, tiny_tokenizer):
    examples = make_examples(tiny_corpus, kind, count=5)
    if kind == "choice":  # as in RACE
        examples = [example._replace(options=(*example.options, "no")) for example in examples]
    program = small(kind, sequence_length=40)
    features = make_task(kind).features(examples, tiny_tokenizer, training=True)
    training = program.config().training.replace(batch_size=4)
    source = ExampleSource(features, tiny_tokenizer, training, {})
    batch = next(iter(source.batches(tf.distribute.get_strategy(), 0)))
    found = {name: (value.dtype.name, tuple(value.shape)) for name, value in batch.items()}
    assert program.features() == found
    assert small(kind, sequence_length=40, predicts=True).features().items() < found.items()


def test_the_run_has_the_global_batch_and_nothing_left_to_decide():
    config = small("tagging", batch=8, accumulation=2, recompute=True).config()
    assert (config.training.batch_size, config.training.accumulation_steps) == (16, 2)
    assert config.training.precision == "mixed_bfloat16" and config.training.recompute
    assert isinstance(config.optimizer.lr, float) and config.task.max_seq_length == 32


def test_what_learns_nothing_neither_accumulates_nor_keeps():
    with pytest.raises(InputError, match="nothing is accumulated"):
        small("spans", predicts=True, accumulation=2)
    with pytest.raises(InputError, match="nothing is kept"):
        small("spans", predicts=True, recompute=True)
    with pytest.raises(InputError, match="predicts"):
        program_of({"predicts": True})


def test_a_kind_makes_it_a_fine_tuning_and_the_table_tells_it():
    assert type(program_of({"batch": 8})) is Program
    program = program_of({"kind": "spans", "predicts": True})
    (*_, row) = table([Checked(program, "v3-8", {"faults": []}, None)])
    assert row.startswith("| albert-base, spans, predicting |")


@pytest.mark.slow
def test_all_kinds_are_learnt_and_predicted():
    results = traced(*(small(kind, predicts=each) for kind in KINDS for each in (False, True)))
    for result in results:
        assert result["faults"] == [] and result["has_hlo"] and result["dynamic_shapes"] == 0
    for learning, predicting in zip(results[::2], results[1::2], strict=True):
        # Each gradient is summed over the replicas once.
        assert learning["weights"] <= learning["all_reduces"] < 2 * learning["weights"]
        assert learning["variables"] >= 3 * learning["weights"]
        assert predicting["all_reduces"] == predicting["variables"] == 0


@pytest.mark.slow
def test_parts_are_accumulated_without_a_sum_over_replicas_in_the_loop():
    (whole, parts, recomputed) = traced(
        small("choice"), small("choice", accumulation=2), small("choice", recompute=True)
    )
    assert parts["faults"] == [] and parts["all_reduces_in_loops"] == 0
    assert parts["all_reduces"] == whole["all_reduces"]
    assert recomputed["barriers"] > 0 == whole["barriers"]


@pytest.mark.slow
def test_block_sparse_attention_has_fixed_shapes_and_gathers_again():
    sparse = {"attention": "block-sparse", "attention_block_size": 2, "attention_random_blocks": 1}
    fields = {"batch": 4, "sequence_length": 16, "vocab_size": 100, "replicas": 2}
    for program in (Program(model=MODEL | sparse, **fields), small("spans", model=MODEL | sparse)):
        (found,) = traced(program)
        assert found["faults"] == [] and found["has_hlo"] and found["dynamic_shapes"] == 0
        assert found["barriers"] == 2  # scores, and weighted sums
