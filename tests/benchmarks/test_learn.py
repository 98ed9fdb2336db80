"""`learn`: the clock, what the peer reads and is scored on, and a small run of ours."""

import numpy as np
import pytest
import yaml

from albert_keras.training.evaluate import evaluate
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks.learn import learn, read_curve, time_to_loss
from tests.benchmarks.peer_data import (
    HELD_OUT,
    IGNORED,
    TRAINING,
    arrays_of,
    masking_function,
    rows_of_batches,
)
from tests.benchmarks.recorder import MARKS, Point, Recorder


def test_the_time_to_a_loss_is_linear_between_points():
    curve = [Point(seconds, 1, loss, 0.5) for seconds, loss in ((10, 8.0), (20, 6.0), (40, 5.0))]
    assert [time_to_loss(curve, loss) for loss in (7.0, 5.25, 6.0)] == [15, 35, 20]
    assert time_to_loss(curve, 9.0) == 10  # an upper bound: there is no earlier point
    assert time_to_loss(curve, 4.9) is None


class Clock:
    """A Recorder, and the clock that it reads: each update takes so long, and scoring 1,000 s."""

    def __init__(self):
        self.seconds = 100.0
        self.recorder = Recorder(30.0, self.score, now=lambda: self.seconds)
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
    found, seconds = clock.recorder.end(), [0.75, 1.5, 2.25, 3, 5.25, 7.5, 10.5, 15, 20.25, 25.5]
    assert [point.seconds for point in found] == [*seconds, 30] and len(found) == len(MARKS)
    assert found[1] == (1.5, 2, 5.0, 0.25) and clock.recorder.is_over


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
    tiny_records, held_out_records, tiny_training, tmp_path, capsys
):
    recipe, out = tmp_path / "tiny.yaml", tmp_path / "out"
    recipe.write_text(yaml.safe_dump(tiny_training.model_dump(mode="json", exclude_unset=True)))
    (tmp_path / "peer.csv").write_text("seconds,updates,loss,accuracy\n10,9,99.0,0.5\n")
    settings = {"minutes": 1 / 6, "recipe": str(recipe), "beside": tmp_path / "peer.csv"}
    learn("ours", tiny_records, held_out_records, out, **settings)
    last, final = read_curve(out / "curve.csv")[-1], evaluate(out / "run", held_out_records)
    assert last.updates == final.step
    assert last.loss == pytest.approx(final.masked_lm_loss, rel=1e-5)
    shown = capsys.readouterr().out
    assert "The peer ends at 99.000 after 0.17 min. It is reached" in shown
    with pytest.raises(InputError, match="is not empty"):
        learn("ours", tiny_records, held_out_records, out, **settings)
