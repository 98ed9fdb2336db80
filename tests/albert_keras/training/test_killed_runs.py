"""A run that is killed again and again ends in the same bits as one that was not."""

import random
import subprocess
import sys
import time

import numpy as np
import pytest

from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.training.pretrain import pretrain
from tests.albert_keras.checkpoint_tensors import tensors_of


@pytest.mark.slow
def test_a_run_that_is_killed_equals_one_that_was_not(tiny_records, tiny_training, tmp_path):
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"steps": 100_000, "checkpoint_every": 5, "report_every": 5}
    config, out = type(tiny_training)(**values), tmp_path / "killed"
    (tmp_path / "config.json").write_text(config.model_dump_json(exclude_unset=True))
    command = [sys.executable, "-m", "albert_keras", "pretrain", "--data", tiny_records]
    command += ["--config", tmp_path / "config.json", "--out", out]
    source, reached = random.Random(7), 0
    for _ in range(8):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            while not (log := read_log(out)) or log[-1]["step"] <= reached:
                assert process.poll() is None
                time.sleep(0.01)
            # Within a step, or while it saves.
            time.sleep(source.uniform(0, 0.4))
        finally:
            process.kill()
            process.wait()
        newest = Run.open(out).checkpoints.newest_valid() or 0
        reached = read_log(out)[-1]["step"]
        assert reached - 5 <= newest <= reached + 5
    straight = pretrain(tiny_records, tmp_path / "straight", config, max_steps=newest)
    found = tensors_of(out, newest)
    for name, expected in tensors_of(straight.path, newest).items():
        np.testing.assert_array_equal(found[name], expected, err_msg=name)
