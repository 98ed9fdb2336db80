"""Scores during a run choose its best checkpoint, end it when nothing gets better, and are told."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest

from albert_keras.runs.checkpoints import CheckpointFolder
from albert_keras.runs.log_file import read_evaluations
from albert_keras.tasks.finetune_config import FinetuneTraining
from albert_keras.tasks.score_dev import ScoreDev, is_enough, values_so_far
from albert_keras.training.run_callbacks import Progress
from albert_keras.training.saving import SaveCheckpoints


class Scripted:
    """A task whose scores are written down; rows say which is next."""

    metric = "f1"
    positive_class = "yes"
    first_thresholds = {"threshold": 0.0}

    def fit_thresholds(self, examples, answers):
        return answers, {"threshold": 0.5}

    def scores(self, examples, answers):
        return {"f1": answers, "accuracy": answers / 2}

    def collapse(self, answers):
        return None


def run(
    folder, values, every=5, patience=None, steps=100, first_step=0, checkpoint_every=1000, **words
):
    """Lets callbacks see the steps of a run; returns ScoreDev, saving, and what was saved."""
    script, progress = iter(values), Progress(first_step, steps)
    checkpoints = CheckpointFolder(folder / "checkpoints", keep=1)

    def answers(model, outputs, ids):
        assert model.thresholds in ({"threshold": 0.0}, {"threshold": 0.5})
        return next(script)

    rows = SimpleNamespace(answers=answers)
    dev = {split: (examples, rows) for split, examples in words.pop("dev", {"dev": []}).items()}
    scores = ScoreDev(
        folder,
        Scripted(),
        dev,
        SimpleNamespace(),
        SimpleNamespace(predict=lambda _: {}),
        FinetuneTraining(evaluate_every=every, patience=patience, steps=steps),
        progress,
        **words,
    )
    saved = {}

    def save(step):
        saved[step] = scores.score if scores.step == step else None
        checkpoints.save(step, {"weight": np.zeros(1)}, {}, saved[step])

    saving = SaveCheckpoints(save, checkpoint_every, progress)
    for batch in range(steps - first_step):
        progress.reach(first_step + batch + 1)
        for callback in (scores, saving):
            callback.on_train_batch_end(batch)
        if progress.is_stopping:
            break
    return scores, saving, saved, checkpoints


def test_the_best_is_saved_amid_checkpoints_and_stays_and_the_end_is_scored(tmp_path):
    scores, saving, saved, checkpoints = run(
        tmp_path, [0.5, 0.9, 0.7, 0.8], steps=17, checkpoint_every=15
    )
    assert saved == {5: -0.5, 10: -0.9, 15: -0.7, 17: -0.8}
    assert checkpoints.steps() == [10, 17] and checkpoints.best() == 10
    assert (scores.step, scores.score, saving.progress.step) == (17, -0.8, 17)


@pytest.mark.parametrize(
    "values, patience, enough",
    [
        ([], 1, False),
        ([0.5, 0.5], 1, True),
        ([0.5, 0.4, 0.6, 0.5], 2, False),
        ([0.5, 0.4, 0.3], None, False),
    ],
)
def test_patience_counts_scores_since_the_best(values, patience, enough):
    assert is_enough(values, patience) == enough


def test_patience_ends_training_saved_and_it_is_no_signal(tmp_path, caplog):
    with caplog.at_level(logging.INFO):
        scores, saving, saved, checkpoints = run(tmp_path, [0.1, 0.5, 0.4, 0.5, 0.3], patience=2)
    assert saving.progress.step == saving.saved == saving.progress.last_step == 20
    assert saving.progress.is_stopping and saving.stopped_by is None
    assert checkpoints.steps() == [20] and checkpoints.best() == 20
    assert "Stopping early: no better score in the last 2 evaluations." in caplog.messages


def test_patience_remembers_what_came_before_an_interruption(tmp_path):
    straight, again = tmp_path / "straight", tmp_path / "again"
    values = [0.1, 0.5, 0.4, 0.3, 0.2, 0.1]
    for folder in (straight, again):
        folder.mkdir()
    assert run(straight, values, patience=3)[1].saved == 25
    run(again, values[:3], patience=3, steps=15)
    scores, saving, saved, _ = run(again, values[3:], patience=3, first_step=15)
    assert saving.saved == 25 and set(saved) == {25}  # the best score so far is from step 10
    assert values_so_far(again, "f1", 25) == values_so_far(straight, "f1", 25) == values[:5]


def test_only_the_first_split_decides(tmp_path, caplog):
    dev = {"dev": [], "dev_mm": []}
    with caplog.at_level(logging.INFO):
        scores, _, saved, _ = run(tmp_path, [0.5, 0.1, 0.4, 0.9], steps=10, dev=dev)
    assert saved == {5: -0.5, 10: -0.4}
    assert read_evaluations(tmp_path)[0][1] == {
        "f1": 0.5, "accuracy": 0.25, "dev_mm/f1": 0.1, "dev_mm/accuracy": 0.05,
    }  # fmt: skip
    told = [line for line in caplog.messages if line.startswith("dev at")]
    line = (
        "dev at step 5: f1 (of `yes`) 0.5  accuracy 0.25  dev_mm/f1 0.1  dev_mm/accuracy 0.05"
        "  *best"
    )
    assert told[0] == line and not told[1].endswith("*best")
