"""A run of three stages that is killed ten times equals one that was not, bit for bit."""

import subprocess
import sys

import pytest

from albert_keras.runs.run import Run
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from tests.albert_keras.training.test_stages import lines_of, short_records, staged, tensors_of

__all__ = ["short_records", "staged"]  # fixtures

STEPS, KILLS = 240, 10

#: As in `test_killed_runs.py`; a process is killed some steps after it has begun, at a random
#: moment: within a step, while it saves, or while the graph of the next stage is built.
KILLED_RUN = """
import os, random, signal, struct, sys, time, traceback
from albert_keras.training.loop import saving
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain

records, out, config, kills = *sys.argv[1:4], int(sys.argv[4])
config = PretrainingConfig.model_validate_json(config)


def run(report):
    on_batch_end = saving.SaveCheckpoints.on_train_batch_end

    def tell(self, batch, logs=None):
        on_batch_end(self, batch, logs)
        os.write(report, struct.pack("q", self.step))

    saving.SaveCheckpoints.on_train_batch_end = tell
    pretrain(records, out, config)


rng, died_at = random.Random(7), []
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
    for _ in range(rng.randint(5, 15)):
        step = struct.unpack("q", os.read(pipe, 8))[0]
    time.sleep(rng.uniform(0, 0.1))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), status
    while told := os.read(pipe, 8):
        step = struct.unpack("q", told)[0]
    os.close(pipe)
    died_at.append(step)
print(*died_at)
"""


@pytest.mark.slow
def test_a_run_of_three_stages_killed_ten_times_equals_one_that_was_not(
    tiny_records, staged, tmp_path
):
    values = staged.model_dump(exclude_unset=True)
    values["training"] |= {"steps": STEPS, "checkpoint_every": 4, "report_every": 7}
    for stage, share in zip(values["stages"], (0.15, 0.2, 0.65), strict=True):
        stage["share"] = share
    config = PretrainingConfig(**values)
    command = [sys.executable, "-c", KILLED_RUN, tiny_records, tmp_path / "killed"]
    command += [config.model_dump_json(), str(KILLS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    died_at = [int(step) for step in done.stdout.split()]
    assert len(died_at) == KILLS
    assert min(died_at) < 36 and max(died_at) > 84, f"not killed in each stage: {died_at}"

    assert pretrain(tiny_records, tmp_path / "killed", config).step == STEPS
    pretrain(tiny_records, tmp_path / "straight", config)
    runs = tmp_path / "killed", tmp_path / "straight"
    steps = [Run.open(run).checkpoints.steps()[-1] for run in runs]
    assert steps == [STEPS, STEPS]
    found, expected = (tensors_of(run, STEPS) for run in runs)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].tobytes() == values.tobytes(), name
    assert lines_of(runs[0]) == lines_of(runs[1])
