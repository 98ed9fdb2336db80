"""A run is tried in little, and nothing of it stays."""

import pytest

from albert_keras.dry_run import dry_run
from data_pipeline.errors import InputError


@pytest.mark.slow
def test_it_goes_all_the_way_and_keeps_nothing(tiny_records, tiny_training, tmp_path):
    config = tiny_training.with_flags(steps=1000)
    trial = dry_run(tiny_records, tmp_path / "run", config)
    assert not (tmp_path / "run").exists()
    assert trial.steps == 1000 and trial.loss > 0 and trial.held_out_loss > 0
    (stage,) = trial.stages
    assert trial.training_seconds == pytest.approx(1000 * stage.seconds_per_step)
    assert trial.peak_megabytes > 100 and 0 < trial.checkpoint_megabytes < trial.disk_megabytes
    text = "\n".join(trial.lines())
    assert "1,000 steps of 8 records of 32 tokens" in text
    assert "scoring and exporting succeeded" in text


def test_what_pretrain_would_refuse_is_refused(tiny_records, tiny_training, tmp_path):
    with pytest.raises(InputError, match="multiple of the number of replicas times"):
        dry_run(tiny_records, tmp_path / "run", tiny_training.with_flags(accumulation_steps=3))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(InputError, match="is not empty"):
        dry_run(tiny_records, tmp_path / "full", tiny_training)


@pytest.mark.slow
def test_every_stage_is_tried(tiny_records, tiny_training, tmp_path):
    stages = [{"share": 0.75, "batch_size": 16}, {"share": 0.25}]
    values = tiny_training.with_flags(steps=1000).model_dump(exclude_unset=True)
    values["optimizer"]["warmup_steps"] = 100  # more than the trial has
    trial = dry_run(tiny_records, tmp_path / "run", type(tiny_training)(**values, stages=stages))
    assert [stage.steps for stage in trial.stages] == [750, 250]
    assert trial.training_seconds == pytest.approx(
        sum(stage.steps * stage.seconds_per_step for stage in trial.stages)
    )
    text = "\n".join(trial.lines())
    assert "1,000 steps take" in text
    assert "stage 1 of 2: 750 steps of 16 records of 32 tokens see each record 17.24 times" in text
