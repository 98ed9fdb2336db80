"""A run with a time budget ends on the clock, its learning rate at 0."""

import pytest

from albert_keras.runs.log_file import read_log
from albert_keras.training.pretrain import pretrain


@pytest.mark.slow
def test_a_budget_ends_the_run_and_its_schedule(tiny_records, tiny_training, tmp_path):
    values = tiny_training.model_dump(exclude_unset=True)
    values["training"] |= {"time_budget": "60s", "report_every": 10, "checkpoint_every": 1000}
    config = type(tiny_training)(**values)
    first = pretrain(tiny_records, tmp_path / "run", config, max_steps=30)
    assert first.step == 30
    result = pretrain(tiny_records, tmp_path / "run", config)
    rates = [line["learning_rate"] for line in read_log(result.path)]
    assert result.resumed_from == 30 and result.step > 60
    assert rates[-1] < 0.02 * max(rates)
    assert first.seconds + result.seconds < 150  # with what comes before and after training
    assert pretrain(tiny_records, tmp_path / "run", config).step == result.step
