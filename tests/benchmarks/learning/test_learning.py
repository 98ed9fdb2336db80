"""`benchmark learn`: the clock, what peers read and are scored on, and a small run of ours."""

import math

import numpy as np
import pytest
import yaml

from albert_keras.training.evaluate import evaluate
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks import learn
from tests.benchmarks.learning.job import MARKS, Recorder
from tests.benchmarks.learning.peer_data import (
    HELD_OUT,
    IGNORED,
    TRAINING,
    arrays_of,
    masking_function,
    rows_of_batches,
)
from tests.benchmarks.learning.report import compare, time_to_loss


def points(*pairs):
    return [{"seconds": seconds, "loss": loss} for seconds, loss in pairs]


def test_ours_is_compared_with_the_best_rate_of_the_peer():
    curve = points((10, 8.0), (20, 6.0), (40, 5.0))
    assert [time_to_loss(curve, loss) for loss in (7.0, 5.25, 6.0)] == [15, 35, 20]
    assert time_to_loss(curve, 9.0) == 10  # an upper bound: there is no earlier point
    assert time_to_loss(curve, 4.9) is None
    ours = {"label": "ours", "points": points((10, 7.0), (20, 5.0), (40, 4.0))}
    peers = [
        {"label": "1", "points": points((20, 8.0), (40, 7.0))},
        {"label": "2", "points": points((20, 7.0), (40, 6.0))},
        {"label": "3", "points": points((20, 9.0), (40, math.nan))},
        {"label": "4", "failed": "not installed"},
    ]
    found = compare([ours, *peers], 40)
    assert (found["best_peer"], found["loss"]) == ("2", 6.0)
    assert found["times"] == {"ours": 15, "1": None, "2": 40, "3": None}
    assert found["ratio"] == pytest.approx(40 / 15)
    behind = {"label": "ours", "points": points((40, 6.5))}
    assert compare([behind, *peers], 40)["ratio"] is None
    assert compare([ours, peers[-1]], 40) is None


class Clock:
    """A Recorder, and the clock that it reads: each update takes so long, and scoring 1,000 s."""

    def __init__(self):
        self.seconds = 100.0
        self.recorder = Recorder(30.0, self.score, 64, now=lambda: self.seconds)
        self.recorder.start()

    def score(self):
        self.seconds += 1000
        return 5.0, 0.25

    def advance(self, *durations):
        for seconds in durations:
            self.seconds += seconds
            self.recorder.add_updates()


def test_points_are_at_the_marks_and_scoring_does_not_count():
    clock = Clock()
    clock.advance(*[0.75] * 40)
    assert clock.recorder.seconds() == 30
    result = clock.recorder.end({"weights": 7})
    found, seconds = result["points"], [0.75, 1.5, 2.25, 3, 5.25, 7.5, 10.5, 15, 20.25, 25.5, 30]
    assert [point["seconds"] for point in found] == seconds and len(found) == len(MARKS)
    assert found[1] == dict(seconds=1.5, updates=2, positions=128, loss=5.0, accuracy=0.25)
    assert result["facts"] == {"weights": 7, "first_update_seconds": 0.75}


def test_another_update_must_end_within_the_time():
    clock = Clock()
    for seconds, is_over in (
        (20.0, False),  # the next one does not compile again
        (4.0, False),  # the next one ends after 28 s
        (4.0, True),
    ):
        clock.advance(seconds)
        assert clock.recorder.is_over is is_over


def test_the_rate_rises_and_falls_by_the_time_after_the_first_update():
    clock = Clock()
    assert clock.recorder.rate_factor() == 1e-3
    clock.advance(10.0)  # 20 s remain
    clock.seconds += 0.06 * 20 / 2
    assert clock.recorder.rate_factor() == pytest.approx(0.5)
    clock.seconds += 0.06 * 20 / 2 + 0.94 * 20 / 4
    assert clock.recorder.rate_factor() == pytest.approx(0.75)


def test_arrays_have_the_masks_of_our_scoring_and_unmasked_tokens_of_training(
    tiny_records, tiny_tokenizer
):
    records = RecordFiles(tiny_records)
    training, held_out = (arrays_of(records, features) for features in (TRAINING, HELD_OUT))
    assert all(len(array) == len(records) for array in (*training.values(), *held_out.values()))
    masks = held_out["input_ids"] == tiny_tokenizer.mask_id
    assert masks.any() and (training["input_ids"] != tiny_tokenizer.mask_id).all()
    original = unmask(*(held_out[name] for name in MASKED_FEATURES))
    np.testing.assert_array_equal(training["input_ids"], original)


def test_each_epoch_of_a_peer_has_every_row_once_masked_by_the_rule_of_transformers(tiny_tokenizer):
    batches = rows_of_batches(10, 4, seed=1)
    rows = [next(batches) for _ in range(5)]  # two epochs
    assert sorted(np.concatenate(rows)) == sorted([*range(10)] * 2)
    word = tiny_tokenizer.ordinary_ids[-1]
    ids = np.tile(np.r_[tiny_tokenizer.cls_id, np.full(98, word), tiny_tokenizer.sep_id], (400, 1))
    masked, labels = masking_function(tiny_tokenizer, 0.15, seed=1)(ids)
    selected = labels != IGNORED
    assert selected[:, 1:-1].mean() == pytest.approx(0.15, abs=0.01)
    assert not selected[:, [0, -1]].any() and (masked[~selected] == ids[~selected]).all()
    assert (masked[selected] == tiny_tokenizer.mask_id).mean() == pytest.approx(0.8, abs=0.02)
    assert (masked[selected] == word).mean() == pytest.approx(0.1, abs=0.02)


@pytest.mark.slow
def test_ours_trains_for_the_time_and_is_scored_as_evaluate_scores_it(
    tiny_records, held_out_records, tiny_training, tmp_path
):
    recipe, out = tmp_path / "tiny.yaml", tmp_path / "out"
    recipe.write_text(yaml.safe_dump(tiny_training.model_dump(mode="json", exclude_unset=True)))
    settings = {"recipe": str(recipe), "peer_lr": (1e-3,)}
    result = learn.benchmark_learn(tiny_records, held_out_records, out, 1 / 6, **settings)
    ours, peer = result["learners"]
    final = evaluate(out / "run", held_out_records)
    assert ours["points"][-1]["updates"] == final.step
    assert ours["points"][-1]["loss"] == pytest.approx(final.masked_lm_loss, rel=1e-5)
    assert peer.get("failed", "not installed").startswith("not installed")
    assert (out / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert any("ours" in line for line in learn.learn_lines(result))
    with pytest.raises(InputError, match="is not empty"):
        learn.benchmark_learn(tiny_records, held_out_records, out, 1 / 6, **settings)
