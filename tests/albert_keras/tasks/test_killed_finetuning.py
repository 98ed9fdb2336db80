"""A fine-tuning that was killed, wherever, ends with the same bits as one that was not."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.cli import main
from albert_keras.runs.run import Run
from albert_keras.tasks import score_dev, train_seed
from albert_keras.tasks.results import as_json, read_results
from albert_keras.training.log_file import TIMING

SEEDS = (12345, 12346)
#: Where processes are killed: place, seed, step.
PLAN = [
    ("before the first checkpoint", SEEDS[0], 3),
    ("at the end of a step", SEEDS[0], 12),
    ("between log and checkpoint", SEEDS[0], 15),
    ("amid a checkpoint", SEEDS[0], 21),
    ("between log and checkpoint", SEEDS[1], 5),
    ("amid a checkpoint", SEEDS[1], 14),
    ("after the last step", SEEDS[1], 0),
]
#: Forking a process in which TensorFlow is imported, and has done nothing, spares the imports.
KILLED = """
import json, os, signal, sys, traceback
from albert_keras.cli import main
from albert_keras.tasks import finetune, score_dev, train_seed
from albert_keras.runs import checkpoints
from albert_keras.training import saving

plan, arguments = json.loads(sys.argv[1]), sys.argv[2:]


def kill_at(place, seed, step):
    folder = f"seed-{seed}"

    def killing(module, name, is_there, before=False):
        original = getattr(module, name)

        def call(*arguments, **words):
            if before and is_there(*arguments):
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*arguments, **words)
            if not before and is_there(*arguments):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(module, name, call)

    if place in ("before the first checkpoint", "at the end of a step"):
        begun = []
        killing(train_seed, "create_or_resume", lambda _, out, *__: begun.append(out.name))
        is_there = lambda self, *_: begun[-1] == folder and self.step == step
        killing(saving.SaveCheckpoints, "on_train_batch_end", is_there)
    elif place == "between log and checkpoint":
        killing(score_dev, "log_evaluation", lambda at, done, _: at.name == folder and done == step)
    elif place == "amid a checkpoint":
        is_there = lambda at, done: at.parent.parent.name == folder and done == step
        killing(checkpoints, "_write_digests", is_there, before=True)
    else:
        killing(train_seed, "save_tuned", lambda run, _: run.path.name == folder, before=True)


for place in [*plan, None]:
    child = os.fork()
    if child == 0:
        try:
            if place:
                kill_at(*place)
            os._exit(main(arguments))
        except BaseException:
            traceback.print_exc()
        os._exit(99)
    _, status = os.waitpid(child, 0)
    expected = 0 if place is None else signal.SIGKILL
    assert status == expected, (place, status)
"""
#: Sends itself SIGTERM in the middle of the second training.
TERMINATED = """
import os, signal, sys
from albert_keras.cli import main
from albert_keras.training.saving import SaveCheckpoints

on_train_begin, on_batch_end = SaveCheckpoints.on_train_begin, SaveCheckpoints.on_train_batch_end
begun = []

def begin(self, logs=None):
    begun.append(self)
    on_train_begin(self, logs)

def end(self, batch, logs=None):
    if len(begun) == 2 and self.step == 8:
        os.kill(os.getpid(), signal.SIGTERM)
    on_batch_end(self, batch, logs)

SaveCheckpoints.on_train_begin, SaveCheckpoints.on_train_batch_end = begin, end
sys.exit(main(sys.argv[1:]))
"""


def everything(out):
    """Returns all that two fine-tunings may not differ in, by name."""
    result = as_json(read_results(out))
    found = {}
    for training in filter(None, [*result["seeds"], result["random"]]):
        del training["seconds"]
        folder = out / training["path"]
        run = Run.open(folder)
        for step in {training["best_step"], run.checkpoints.latest()}:
            reader = tf.train.load_checkpoint(run.checkpoints.prefix(step))
            for name in reader.get_variable_to_shape_map():
                found[f"{folder.name} {step} {name}"] = reader.get_tensor(name)
        lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
        found[f"{folder.name} log"] = [
            {name: value for name, value in line.items() if name not in TIMING} for line in lines
        ]
    for name in ("predictions-dev.jsonl", "errors.tsv"):
        found[name] = (out / name).read_text()
    return found | {name: result[name] for name in ("seeds", "majority", "loaded", "examples")}


def assert_same(out, straight):
    found, expected = everything(Path(out)), everything(Path(straight))
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


@pytest.fixture(scope="module")
def command(toy_config, small_shape, tiny_vocabulary, tmp_path_factory):
    """Returns arguments of the command line for two trainings with all that could go astray."""
    folder = tmp_path_factory.mktemp("command")
    shape = small_shape.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    shape.save(folder / "shape.json")
    training = {"steps": 24, "evaluate_every": 5, "checkpoint_every": 7, "report_every": 4}
    training |= {"patience": None, "accumulation_steps": 2, "skip_spikes": True}
    values = toy_config.model_dump(exclude_unset=True, mode="json")
    values["training"] |= training
    (folder / "config.json").write_text(json.dumps(values))
    return [
        "finetune", "--from", "random", "--albert-config", f"{folder}/shape.json",
        "--tokenizer", str(tiny_vocabulary.path), "--config", f"{folder}/config.json",
        "--seeds", "2",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def straight(command, tmp_path_factory):
    out = tmp_path_factory.mktemp("straight") / "out"
    assert main([*command, "--out", str(out)]) == 0
    return out


def run(code, *arguments):
    environ = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environ)


@pytest.mark.slow
def test_killed_anywhere_it_ends_in_the_same_bits(command, straight, tmp_path):
    done = run(KILLED, json.dumps(PLAN), *command, "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr[-3000:]
    assert_same(tmp_path / "out", straight)


@pytest.mark.slow
def test_sigterm_in_the_second_training_ends_saved_and_says_how_to_go_on(
    command, straight, tmp_path
):
    arguments = [*command, "--out", str(tmp_path / "out")]
    done = run(TERMINATED, *arguments)
    assert done.returncode == 143, done.stderr[-3000:]
    assert f"seed-{SEEDS[1]}` at step 9; give the same command to resume it" in done.stderr
    assert Run.open(tmp_path / "out" / f"seed-{SEEDS[1]}").checkpoints.latest() == 9
    assert not (tmp_path / "out" / "results.json").exists()
    assert main(arguments) == 0
    assert_same(tmp_path / "out", straight)


def test_a_crash_between_log_and_checkpoint_changes_nothing(tune, tuned_toy, tmp_path, monkeypatch):
    monkeypatch.setattr(train_seed, "draw_dev_curves", lambda *_: None)
    log = score_dev.log_evaluation

    def crash(folder, step, scores):
        log(folder, step, scores)
        if step == 15:
            raise MemoryError("a crash")

    with monkeypatch.context() as patch:
        patch.setattr(score_dev, "log_evaluation", crash)
        with pytest.raises(MemoryError):
            tune(tmp_path / "out")
    run = Run.open(tmp_path / "out" / f"seed-{SEEDS[0]}")
    assert run.checkpoints.latest() < 15 and '{"step": 15' in (run.path / "log.jsonl").read_text()
    tune(tmp_path / "out")
    assert_same(tmp_path / "out", tuned_toy.path)
