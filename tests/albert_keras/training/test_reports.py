"""Reports come at the right steps, repeat exactly, and measure what this process did."""

import json
import logging
import math
from types import SimpleNamespace

import pytest
import tensorflow as tf

from albert_keras.runs.log_file import TIMING, keep_log_until, read_evaluations, read_log
from albert_keras.training import reports
from albert_keras.training.reports import Report
from albert_keras.training.run_callbacks import Progress
from albert_keras.training.stage_plan import StagePlan

#: What the log of a usual step holds, besides sums.
MEANS = {
    "loss": 5.1234,
    "gradient_norm": 0.984,
    "masked_lm_loss": 4.5,
    "masked_lm_accuracy": 0.2312,
    "sentence_order_loss": 0.6,
    "sentence_order_accuracy": 0.7118,
}
TOKENS_PER_STEP = 80


class Fit:
    """Calls a Report as Keras would; each step takes so long, and waits for data so long.

    It stands for the model, too.
    """

    optimizer = SimpleNamespace(schedule=lambda step: step / 1000)

    def __init__(self, monkeypatch):
        self.now, self.waited, self.tokens, self.skipped = 1000.0, 0.0, 0, 0
        self.resets = []
        monkeypatch.setattr(reports, "time", SimpleNamespace(monotonic=lambda: self.now))

    def begin(self, folder, every=4, first_step=0, last_step=12):
        self.progress = Progress(first_step, last_step)
        self.report = Report(folder, every, self.progress)
        self.report.set_model(self)
        self.report.begin_stage(100)
        self.report.on_train_begin()
        return self

    def run(self, steps, seconds=1.0, together=1, waits=0.0, skips=0, **logs):
        for _ in range(steps // together):
            step = self.progress.step + together
            batch = step - self.progress.first_step - 1
            self.now += seconds * together
            self.waited += waits * together
            self.tokens += TOKENS_PER_STEP * together
            self.skipped += skips
            values = MEANS | {"tokens": self.tokens, "skipped": self.skipped} | logs
            self.progress.reach(step)
            self.report.on_train_batch_end(batch, values)
        return self

    def end(self):
        self.report.on_train_end()

    def reset_metrics(self):
        self.resets.append(self.progress.step)
        self.tokens = self.skipped = 0


@pytest.fixture
def fit(monkeypatch):
    return Fit(monkeypatch)


@pytest.fixture
def screen(caplog):
    caplog.set_level(logging.INFO, "albert_keras")
    return caplog


def test_a_line_holds_means_rate_and_skipped_and_then_what_depends_on_the_clock(fit, tmp_path):
    fit.begin(tmp_path)
    fit.run(1, seconds=30).run(2, waits=0.25).run(1, skips=1, skipped_in_row=1.0, loss_scale=8.0)
    fit.end()
    [line] = map(json.loads, (tmp_path / "log.jsonl").read_text().splitlines())
    assert list(line) == ["step", *MEANS, "skipped_in_row", "loss_scale"] + [
        "learning_rate",
        "skipped",
        *TIMING,
    ]
    assert line["loss"] == 5.1234 and line["loss_scale"] == 8.0
    assert line["step"] == 4 and line["learning_rate"] == 0.003
    assert line["skipped"] == 1 and isinstance(line["skipped"], int)
    assert line["skipped_in_row"] == 1
    assert line["seconds"] == 33
    # Of the three steps after the first one, in three seconds.
    assert line["tokens_per_second"] == 80 and line["positions_per_second"] == 100
    assert line["input_wait"] == pytest.approx(0.5 / 3)
    assert fit.progress.line == line


def test_a_report_comes_with_the_execution_that_reaches_or_passes_a_multiple(fit, tmp_path):
    fit.begin(tmp_path, every=10, last_step=23)
    fit.run(20, together=4).run(3, together=3).end()
    assert [line["step"] for line in read_log(tmp_path)] == fit.resets == [12, 20, 23]
    assert [line["positions_per_second"] for line in read_log(tmp_path)] == [100] * 3


def test_a_resumed_run_reports_its_own_speed(fit, tmp_path):
    fit.begin(tmp_path).run(6)
    tokens = fit.tokens  # a checkpoint keeps the metrics
    fit.run(2, seconds=5)
    fit.begin(tmp_path, first_step=6)
    fit.tokens = tokens
    fit.run(1, seconds=60).run(5, seconds=2).end()
    log = read_log(tmp_path)
    assert [line["step"] for line in log] == [4, 8, 12]
    assert log[1]["tokens_per_second"] == pytest.approx(40)  # one step of 80 tokens in 2 s
    assert log[1]["positions_per_second"] == 50


def test_an_interval_without_any_update_has_no_means(fit, tmp_path, screen):
    fit.begin(tmp_path).run(4, skips=1, skipped_in_row=4.0, loss=0.0).end()
    text = (tmp_path / "log.jsonl").read_text()
    assert '"loss": null' in text and '"gradient_norm": null' in text and "NaN" not in text
    [line] = read_log(tmp_path)
    assert math.isnan(line["loss"]) and line["skipped"] == line["skipped_in_row"] == 4
    assert fit.progress.line["loss"] is None
    assert "loss -  mlm -  sop -  lr 3.0e-03  gnorm -" in screen.messages[-1]


def test_the_screen_shows_one_line_per_report(fit, tmp_path, screen):
    fit.begin(tmp_path, every=2000, last_step=125_000)
    fit.run(1, seconds=30).run(1999, waits=0.02, skipped=1)
    assert screen.messages[0] == "step 1/125,000 done after 30 s, the graph is built"
    assert screen.messages[-1] == (
        "step 2,000/125,000  loss 5.123  mlm 0.231  sop 0.712  lr 2.0e+00  gnorm 0.98  "
        "80 tok/s  skipped 1  ETA 1 day 10 h"
    )
    fit.end()


def test_time_is_shown_where_it_ends_the_run(fit, tmp_path, screen):
    fit.begin(tmp_path, every=2000, last_step=4987)
    fit.progress.seconds = 28_800.0
    fit.run(1, seconds=30)
    fit.progress.seconds_used = 4320.0
    fit.run(1999).end()
    assert screen.messages[-1].startswith("step 2,000, 1 h 12 min of 8 h 0 min  loss ")
    assert screen.messages[-1].endswith("  ETA 6 h 48 min")


def test_tensorboard_shows_what_the_log_holds(fit, tmp_path):
    fit.begin(tmp_path).run(4).run(4, skips=1).end()
    [path] = (tmp_path / "tensorboard").iterdir()
    shown = {
        (event.step, value.tag): float(tf.make_ndarray(value.tensor))
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }
    logged = {
        (line["step"], name): pytest.approx(value)
        for line in read_log(tmp_path)
        for name, value in line.items()
        if name != "step" and not math.isnan(value)
    }
    assert shown == logged and (8, "skipped") in shown and (8, "loss") not in shown


def test_a_log_that_cannot_be_written_is_found_before_the_first_step(fit, tmp_path):
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(OSError) as error:
        fit.begin(tmp_path)
    assert error.value.filename == str(tmp_path / "log.jsonl")


def test_a_damaged_line_is_reported_and_left_out(tmp_path, caplog):
    lines = [
        b'{"step": 4, "loss": 1.5}',
        b'{"step": 8, "lo\xf3s": 1.5}',
        b'{"st\x65p": 12, "loss": 1.0',
        b'{"stdp": 12, "loss": 1.0}',
        b'{"step": "12", "loss": 1.0}',
        b'{"step": 16, "loss": 2.5}',
        b'{"step": 20, "loss": 2.5}',
    ]
    (tmp_path / "log.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    assert [line["step"] for line in read_log(tmp_path)] == [4, 16, 20]
    assert read_evaluations(tmp_path) == []
    caplog.clear()
    keep_log_until(tmp_path, 16)
    assert (tmp_path / "log.jsonl").read_bytes() == lines[0] + b"\n" + lines[-2] + b"\n"
    (message,) = caplog.messages
    assert "log.jsonl` is damaged in line 2, 3, 4, 5, which is ignored" in message
    (tmp_path / "log.jsonl").write_bytes(lines[0] + b'\n{"st')  # cut
    keep_log_until(tmp_path, 7)
    assert (tmp_path / "log.jsonl").read_bytes() == lines[0] + b"\n"


def test_a_stage_ends_with_a_report_and_the_next_has_its_own_rates(fit, tmp_path, screen):
    fit.begin(tmp_path)
    fit.progress.plan = StagePlan([0.4, 0.6], [6, 12], [50, 200])
    fit.run(6)
    assert "step 6/12" in screen.messages[-1] and "ETA 24 s" in screen.messages[-1]
    fit.report.begin_stage(400)
    fit.run(1, seconds=30).run(5, seconds=4.0).end()
    log = read_log(tmp_path)
    assert [(line["step"], line["stage"]) for line in log] == [(4, 1), (6, 1), (8, 2), (12, 2)]
    assert fit.resets == [4, 6, 8, 12]
    assert [line["positions_per_second"] for line in log] == [100, 100, 100, 100]
    assert "step 8/12" in screen.messages[-3] and "ETA 16 s" in screen.messages[-3]
