"""The log of a run: one JSON line per report, TensorBoard, a line on the screen."""

import json
import logging
import time
from pathlib import Path

import tensorflow as tf
from tensorflow import keras

from data_pipeline.files import whole_file

logger = logging.getLogger(__name__)

#: Something appears on the screen at least this often while training goes on.
_SECONDS_BETWEEN_LINES = 8


class Report(keras.callbacks.Callback):
    """Writes the means of the last steps to log, TensorBoard and screen.

    Args:
        folder: Path. Folder of the run.
        every: int. Steps between reports.
        first_step: int. Steps done before this `fit`.
        last_step: int. The step that ends the run.
        schedule: LearningRateSchedule.
        positions_per_step: int. Places in a batch, padding included, B · S.
    """

    def __init__(self, folder, every, first_step, last_step, schedule, positions_per_step):
        super().__init__()
        self.folder, self.every = Path(folder), every
        self.first_step = self.step = first_step
        self.last_step, self.schedule = last_step, schedule
        self.positions_per_step = positions_per_step

    def on_train_begin(self, logs=None):
        keep_log_until(self.folder, self.first_step)
        self._log = open(self.folder / "log.jsonl", "a", encoding="utf-8")
        self._tensorboard = tf.summary.create_file_writer(str(self.folder / "tensorboard"))
        self._begun = self._reported = self._shown = time.monotonic()
        self._reported_step = self._steady_step = self.step

    def on_train_batch_end(self, batch, logs=None):
        self.step += 1
        now = time.monotonic()
        if self.step == self.first_step + 1:
            # The first step holds the tracing of the graph; keep it out of the estimates.
            self._begun, self._steady_step = now, self.step
            logger.info("step %d/%d done, the graph is built", self.step, self.last_step)
            self._shown = now
        if self.step % self.every == 0 or self.step == self.last_step:
            self._report(logs, now)
        elif now > self._shown + _SECONDS_BETWEEN_LINES:
            self._shown = now
            logger.info("step %d/%d  ETA %s", self.step, self.last_step, self._eta(now))

    def on_train_end(self, logs=None):
        self._log.close()
        self._tensorboard.close()

    def _report(self, logs, now):
        values = {name: float(value) for name, value in logs.items()}
        steps, seconds = self.step - self._reported_step, max(now - self._reported, 1e-9)
        tokens = values.pop("tokens")
        line = {"step": self.step} | values
        line["learning_rate"] = float(self.schedule(self.step - 1))
        line["tokens_per_second"] = tokens / seconds
        line["positions_per_second"] = steps * self.positions_per_step / seconds
        line["seconds"] = seconds
        self._log.write(json.dumps(line) + "\n")
        self._log.flush()
        with self._tensorboard.as_default():
            for name, value in line.items():
                if name != "step":
                    tf.summary.scalar(name, value, step=self.step)
        self.model.reset_metrics()
        order = line.get("sentence_order_accuracy")
        self._reported, self._reported_step, self._shown = now, self.step, now
        logger.info(
            "step %d/%d  loss %.3f  mlm %.3f%s  lr %.2e  gnorm %.2f  %s tok/s  ETA %s",
            self.step,
            self.last_step,
            line["loss"],
            line["masked_lm_accuracy"],
            f"  sop {order:.3f}" if order is not None else "",
            line["learning_rate"],
            line["gradient_norm"],
            f"{line['tokens_per_second']:,.0f}",
            self._eta(now),
        )

    def _eta(self, now):
        done = self.step - self._steady_step
        if not done:
            return "?"
        seconds = (now - self._begun) / done * (self.last_step - self.step)
        return (
            time.strftime("%H:%M:%S", time.gmtime(seconds))
            if seconds < 86400
            else (f"{seconds / 86400:.1f} days")
        )


def read_log(folder):
    """Reads the training reports of a run's `log.jsonl`: list of dicts."""
    path = Path(folder) / "log.jsonl"
    if not path.is_file():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if "evaluation" not in line]


def log_evaluation(folder, step, scores):
    """Adds the scores of an evaluation (dict) to a run's `log.jsonl`."""
    with open(Path(folder) / "log.jsonl", "a", encoding="utf-8") as log:
        log.write(json.dumps({"step": step, "evaluation": scores}) + "\n")


def keep_log_until(folder, step):
    """Drops lines of steps that will be done again because no checkpoint holds them."""
    path = Path(folder) / "log.jsonl"
    if not path.is_file():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line + "\n")
        except ValueError:  # cut in the middle of a line
            break
    with whole_file(path) as temporary:
        temporary.write_text("".join(kept), encoding="utf-8")
