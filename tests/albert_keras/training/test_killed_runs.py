"""A run that saves every five steps and is killed a hundred times loses five steps each at most."""

import numpy as np
import pytest

from albert_keras.runs.run import Run
from albert_keras.training.pretrain import pretrain
from tests.albert_keras.checkpoint_tensors import tensors_of
from tests.albert_keras.training.killed_processes import pretrain_and_kill


def killed(records, out, config, kills):
    reached = 0
    for first, last in pretrain_and_kill(records, out, config, kills, (1, 1), 0.4):
        assert reached - 5 < first <= reached + 2, (reached, first)
        reached = last
    newest = Run.open(out).checkpoints.newest_valid()
    assert reached - 5 <= newest <= reached + 1
    return newest


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
