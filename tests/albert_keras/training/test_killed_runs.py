"""A run that saves every five steps and is killed a hundred times loses five steps each at most."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.runs.run import Run
from albert_keras.training.pretrain import pretrain

#: Forking a process in which TensorFlow is imported, and has done nothing, spares the imports.
#: Each run is killed at a random moment after its first step, which may be while it saves.
KILLED_RUNS = """
import logging, os, random, signal, struct, sys, time, traceback
from albert_keras.training.loop import saving
from albert_keras.runs.checkpoints import CheckpointFolder
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from albert_keras.runs.run import Run

records, out, config, kills = *sys.argv[1:4], int(sys.argv[4])
config = PretrainingConfig.model_validate_json(config)


def run(report):
    on_batch_end = saving.SaveCheckpoints.on_train_batch_end

    def tell(self, batch, logs=None):
        on_batch_end(self, batch, logs)
        os.write(report, struct.pack("q", self.step))

    saving.SaveCheckpoints.on_train_batch_end = tell
    pretrain(records, out, config)


rng, reached, steps_seen = random.Random(7), 0, []
for _ in range(kills):
    pipe, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            run(report)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(report)
    first = struct.unpack("q", os.read(pipe, 8))[0]
    assert reached - 5 < first <= reached + 2, (reached, first)
    reached = first
    time.sleep(rng.uniform(0, 0.4))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    while told := os.read(pipe, 8):
        reached = struct.unpack("q", told)[0]
    os.close(pipe)
print(reached)
"""


def killed(records, out, config, kills):
    command = [sys.executable, "-c", KILLED_RUNS, records, out, config.model_dump_json()]
    done = subprocess.run([*command, str(kills)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    newest = Run.open(out).checkpoints.newest_valid()
    assert int(done.stdout) - 5 <= newest <= int(done.stdout) + 1
    return newest


def tensors_of(run, step):
    reader = tf.train.load_checkpoint(Run.open(run).checkpoints.prefix(step))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.slow
def test_a_run_killed_a_hundred_times_equals_one_that_was_not(
    tiny_records, tiny_training, tmp_path
):
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"steps": 100_000, "checkpoint_every": 5, "report_every": 5}
    config = type(tiny_training)(**values)
    reached = killed(tiny_records, tmp_path / "killed", config, kills=100)
    straight = pretrain(tiny_records, tmp_path / "straight", config, max_steps=reached)
    found = tensors_of(tmp_path / "killed", reached)
    for name, expected in tensors_of(straight.path, reached).items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)
