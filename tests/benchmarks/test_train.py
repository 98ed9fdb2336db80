"""The contest of training steps: who takes part, on what, and what is told of it."""

import importlib.util

import numpy as np
import pytest

from data_pipeline.errors import InputError
from tests.benchmarks import __main__ as command
from tests.benchmarks.shapes import make_shape
from tests.benchmarks.train import (
    benchmark_train,
    compare,
    contestants_for,
    describe,
    train_lines,
)
from tests.benchmarks.trainers import (
    LossLog,
    prepare_keras_nlp,
    prepare_ours,
    prepare_transformers,
    synthetic_batch,
)

SHAPE = make_shape("2x64", batch_size=2, max_seq_length=32)


def measured(name, dtype, rounds, peak_mb):
    middle = sorted(rounds)[len(rounds) // 2]
    return {
        "name": name,
        "dtype": dtype,
        "seconds": {"median": middle, "low": min(rounds), "high": max(rounds)},
        "rounds": rounds,
        "times": rounds,
        "start_seconds": 1.0,
        "peak_mb": peak_mb,
        "step_mb": peak_mb / 2,
        "facts": {
            "weights": 4_000_000,
            "optimizer": "AdamW",
            "device": "cpu",
            "first_loss": 10.4,
            "last_loss": 9.5,
            "updates": 9,
            "versions": {"torch": "2.5"},
        },
    }


@pytest.fixture
def results():
    found = [
        measured("ours", "float32", [4.0, 4.0, 8.0], 1000),
        measured("ours", "bfloat16", [1.0, 2.0, 1.0], 900),
        measured("slow", "float32", [8.0, 8.0, 8.0], 500),
        measured("quick", "bfloat16", [2.0, 2.0, 3.0], 1800),
        {"name": "dead", "dtype": "bfloat16", "failed": "out of memory"},
    ]
    return {f"{result['name']}, {result['dtype']}": result for result in found}


PEAKS = {"float32": 10e9, "bfloat16": 40e9}


def test_ratios_and_shares_are_those_of_single_rounds(results):
    described = describe(results, tokens=100, flops=20e9, peaks=PEAKS)
    quick = described["quick, bfloat16"]
    assert quick["tokens_per_second"] == {"median": 50, "low": 100 / 3, "high": 50}
    assert quick["flops"]["median"] == 10e9 and quick["share_of_peak"]["median"] == 0.25
    assert quick["ratio"] == {"median": 2, "low": 1, "high": 3}  # to bfloat16, our fastest
    assert described["ours, bfloat16"]["ratio"] == {"median": 1, "low": 1, "high": 1}
    assert described["slow, float32"]["share_of_peak"]["median"] == 0.25
    assert described["dead, bfloat16"] == results["dead, bfloat16"]


def test_ours_is_compared_with_the_fastest_peer_and_the_leanest_of_its_dtype(results):
    assert compare(results, "bfloat16") == {
        "dtype": "bfloat16",
        "failed": None,
        "fastest_peer": "quick, bfloat16",
        "faster": {"median": 2, "low": 1, "high": 3},
        "leanest_peer": "quick, bfloat16",
        "memory": 0.5,
    }
    single = compare(results, "float32")
    assert single["fastest_peer"] == "quick, bfloat16" and single["faster"]["median"] == 0.5
    assert single["leanest_peer"] == "slow, float32" and single["memory"] == 2


def test_ours_may_fail_or_have_no_peer(results):
    dead = {"name": "ours", "dtype": "float32", "failed": "killed"}
    assert compare(results | {"ours, float32": dead}, "float32")["failed"] == "killed"
    alone = {label: result for label, result in results.items() if label.startswith("ours")}
    assert compare(alone, "float32")["fastest_peer"] is None


def test_the_table_tells_all_of_them(results):
    settings = {"model": "m", "batch_size": 8, "max_seq_length": 128, "predictions": 19}
    lines = list(
        train_lines(
            {
                "machine": {
                    "cpu": "c",
                    "cores": 2,
                    "load": 0.1,
                    "system": "Linux",
                    "python": "3.11",
                    "numpy": "1.26",
                    "tensorflow": "2.15.1",
                },
                "settings": settings | {"vocab_size": 30_000, "useful_flops": 20e9, "repeats": 3},
                "peaks": PEAKS,
                "contestants": describe(results, 100, 20e9, PEAKS),
                "comparisons": [compare(results, dtype) for dtype in PEAKS],
            }
        )
    )
    text = "\n".join(lines)
    assert "fastest square product in bfloat16: 40 GFLOP/s" in text
    (row,) = [line for line in lines if line.startswith("  quick") and "[" in line]
    assert (
        row.split()[1:] == "bfloat16 2.000 [2.000..3.000] 50 10 25% 1,800 2.00 [1.00..3.00]".split()
    )
    assert "dead, bfloat16: out of memory" in lines
    assert "10.40 → 9.50" in text and "torch 2.5" in text
    assert lines[-2:] == [
        "ours, bfloat16: 2.00 [1.00..3.00] times as fast as the fastest peer (quick, bfloat16)",
        "ours, bfloat16: 0.50 times the memory of the leanest peer (quick, bfloat16)",
    ]


def test_peers_and_precisions_are_chosen_by_name():
    def labels(**chosen):
        return [contestant.label for contestant in contestants_for(SHAPE, **chosen)]

    assert labels(precisions=["mixed_bfloat16"], peers=["none"]) == ["ours, bfloat16"]
    assert labels(peers=["keras-nlp"])[2:] == ["keras-nlp, float32", "keras-nlp, bfloat16"]
    assert "transformers, compiled, masked positions, bfloat16" in labels(peers=["all"])
    assert len(labels(peers=["all"])) == len(set(labels(peers=["all"]))) == 10


@pytest.mark.parametrize(
    "chosen, says",
    [
        ({"peers": ["transformer"]}, "Did you mean `transformers`"),
        ({"peers": ["all", "keras-nlp"]}, "must be the only peer"),
        ({"precisions": ["bfloat16"]}, "float32 or mixed_bfloat16"),
    ],
)
def test_unknown_words_are_refused(chosen, says):
    with pytest.raises(InputError, match=says):
        contestants_for(SHAPE, **chosen)


def test_the_batch_predicts_different_positions_of_a_full_sequence():
    batch = synthetic_batch(SHAPE)
    assert {name: values.shape for name, values in batch.items()} == {
        "input_ids": (2, 32),
        "segment_ids": (2, 32),
        "input_mask": (2, 32),
        "masked_lm_positions": (2, 4),
        "masked_lm_ids": (2, 4),
    }
    assert (np.diff(batch["masked_lm_positions"]) > 0).all() and batch["input_mask"].all()
    assert (np.diff(batch["segment_ids"]) >= 0).all() and 0 < batch["input_ids"].max() < 30_000


def test_the_loss_of_a_step_is_found_from_means():
    facts = {}
    log = LossLog(facts)
    for mean in (10.0, 9.0, 8.0):  # of 10, 8, 6
        log.add_mean(mean)
    assert facts == {"first_loss": 10, "last_loss": pytest.approx(6), "updates": 3}


def test_ours_trains_with_lamb():
    """The default optimizer of a small model is another one."""
    assert prepare_ours(SHAPE, "float32").facts["optimizer"] == "LAMB"


@pytest.mark.slow
@pytest.mark.parametrize("prepare", [prepare_ours, prepare_keras_nlp])
def test_ours_and_keras_nlp_train(prepare):
    check_training(prepare(SHAPE, "float32"), 4_007_024)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
@pytest.mark.parametrize("at_masked_positions", [False, True])
def test_pytorch_trains(at_masked_positions):
    from tests.benchmarks.measure import in_new_process

    in_new_process(check_pytorch, at_masked_positions)  # PyTorch stays out of this process


def check_pytorch(at_masked_positions):
    without_pooler = 4_007_024 - 64 * 64 - 64
    prepared = prepare_transformers(SHAPE, "float32", False, at_masked_positions)
    check_training(prepared, without_pooler)


def check_training(prepared, weights):
    for _ in range(5):
        prepared.run()
    facts = prepared.facts
    # All begin at log V, the loss of a model that knows nothing.
    assert facts["first_loss"] == pytest.approx(np.log(30_000), abs=0.3)
    assert facts["last_loss"] < facts["first_loss"] and facts["updates"] == 5
    assert facts["weights"] == weights


def test_options_are_the_parameters_of_a_benchmark(capsys):
    assert command.main(["train", "--model", "6*256", "--peers", "none"]) == 2
    assert "did you mean `6x256`" in capsys.readouterr().err
    assert command.main(["nothing"]) == 2 and "data,read,train" in capsys.readouterr().err


@pytest.mark.slow
def test_a_contest_measures_ours_and_a_peer():
    result = benchmark_train("2x64", 2, 32, ["float32"], ["keras-nlp"], repeats=2, seconds=0.1)
    assert all("failed" not in found for found in result["contestants"].values())
    assert result["comparisons"][0]["fastest_peer"] == "keras-nlp, float32"
    assert len(list(train_lines(result))) > 12
