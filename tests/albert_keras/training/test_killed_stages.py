"""A run of three stages that is killed ten times equals one that was not, bit for bit."""

import pytest

from albert_keras.runs.run import Run
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from tests.albert_keras.checkpoint_tensors import tensors_of
from tests.albert_keras.training.killed_processes import pretrain_and_kill
from tests.albert_keras.training.test_stages import lines_of, short_records, staged

__all__ = ["short_records", "staged"]  # fixtures

STEPS, KILLS = 240, 10


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["lamb", "muon"])
def test_a_run_of_three_stages_killed_ten_times_equals_one_that_was_not(
    tiny_records, staged, tmp_path, optimizer
):
    values = staged.model_dump(exclude_unset=True)
    values["optimizer"] = {"name": optimizer, "lr": 0.003, "warmup_steps": 10}
    values["training"] |= {"steps": STEPS, "checkpoint_every": 4, "report_every": 7}
    for stage, share in zip(values["stages"], (0.15, 0.2, 0.65), strict=True):
        stage["share"] = share
    config = PretrainingConfig(**values)
    made = pretrain_and_kill(tiny_records, tmp_path / "killed", config, KILLS, (5, 15), 0.1)
    died_at = [last for _, last in made]
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
