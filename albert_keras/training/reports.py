"""The log of a run: one JSON line per report, TensorBoard, a line on the screen."""

import json
import logging
import math
import time
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf

from albert_keras.runs.log_file import append_to_log, keep_log_until, read_log
from albert_keras.training.run_callbacks import Progress
from data_pipeline.progress import State, format_duration, log_state

logger = logging.getLogger(__name__)

#: Seconds between two lines of progress.
_BETWEEN_LINES = 5

_ON_SCREEN = (
    ("loss", "loss", ".3f"),
    ("mlm", "masked_lm_accuracy", ".3f"),
    ("sop", "sentence_order_accuracy", ".3f"),
    ("acc", "answer_accuracy", ".3f"),
    ("lr", "learning_rate", ".1e"),
    ("gnorm", "gradient_norm", ".2f"),
)


class Report(keras.callbacks.Callback):
    """Writes the means since the last report to the log, TensorBoard and the screen.

    A line of the log contains `step`; `stage`, counted from 1, if there are several; the model's
    metrics, null if all updates were skipped; `learning_rate` of the last step; `skipped`, the
    number of skipped updates; then the keys of `log_file.TIMING`:

    tokens_per_second     without padding
    positions_per_second  with padding
    input_wait            fraction of the time spent waiting for data; if that is known
    seconds               since the last report, or since training started

    Rates exclude the first execution, which builds the graph, unless it is the only one.

    The last step of a stage reports, too, so that no mean is taken over two stages.
    """

    def __init__(
        self,
        folder: str | Path,  # of the run
        every: int,  # steps between reports
        progress: Progress,
        writes: bool = True,  # if not, only resets the metrics at the same steps as the others
    ):
        super().__init__()
        self.folder, self.every, self.writes = Path(folder), every, writes
        self.progress = progress
        self.positions_per_step = 0  # see `begin_stage`

    def begin_stage(self, positions_per_step: int):
        """Begins to report a stage, whose steps differ from those before.

        Args:
            positions_per_step: Positions that a step trains on, padding included.
        """
        self.positions_per_step = positions_per_step
        self._stage_start: _Moment | None = None  # after the first execution, which builds a graph

    def on_train_begin(self, logs=None):
        if not self.writes:
            return
        keep_log_until(self.folder, self.progress.first_step)
        append_to_log(self.folder, "")  # fails now if the log cannot be written
        self._tensorboard = tf.summary.create_file_writer(str(self.folder / "tensorboard"))
        log = read_log(self.folder)
        # The metrics are restored: they may include steps of an earlier process.
        self._interval_start = log[-1]["step"] if log else 0
        self._rates_start = self._moment()
        self._shown = self._reported = self._rates_start.seconds

    def on_train_batch_end(self, batch, logs=None):
        progress, plan = self.progress, self.progress.plan
        ends_stage = progress.step >= plan.ends[plan.number_at(progress.before)]
        is_due = progress.is_at(self.every) or ends_stage
        if self.writes:
            self._update(logs if is_due else None)
        if is_due:
            self.model.reset_metrics()

    def on_train_end(self, logs=None):
        if self.writes:
            self._tensorboard.close()

    def _update(self, logs):
        now = self._moment()
        is_first = self._stage_start is None
        if is_first:
            self._stage_start = now
        state = self._state(now)
        if logs is not None:
            self._report({name: float(value) for name, value in logs.items()}, now, state)
        elif is_first:
            seconds = format_duration(now.seconds - self._reported)
            logger.info("%s done after %s, the graph is built", state.text, seconds)
        elif now.seconds > self._shown + _BETWEEN_LINES:
            text = f"{state.text}  ETA {_duration(state.eta)}"
            log_state(logger, state._replace(text=text))
        else:
            return
        self._shown = now.seconds
        if logs is not None or is_first:
            self._rates_start = now

    def _report(self, values, now, state):
        tokens, plan = values.pop("tokens"), self.progress.plan
        line = {"step": now.step}
        if len(plan) > 1:
            line["stage"] = plan.number_at(now.step - 1) + 1
        line |= self._metrics(values) | self._rates(tokens, now)
        append_to_log(self.folder, json.dumps(line, allow_nan=False) + "\n")
        with self._tensorboard.as_default():
            for name, value in line.items():
                if name != "step" and value is not None:
                    tf.summary.scalar(name, value, step=now.step)
        self.progress.line = line
        self._interval_start, self._reported = now.step, now.seconds
        text = f"{state.text}  {_on_screen(line)}  ETA {_duration(state.eta)}"
        logger.info("%s", text, extra={"report": line | {"eta_seconds": state.eta}})

    def _metrics(self, values):
        """Returns the values of a line that do not depend on the clock."""
        skipped = int(values.pop("skipped", 0))
        has_updates = skipped < self.progress.step - self._interval_start
        metrics = {}
        for name, value in values.items():
            is_mean = name == "gradient_norm" or name.endswith(("loss", "accuracy"))
            is_known = math.isfinite(value) and (has_updates or not is_mean)
            metrics[name] = value if is_known else None
        if "skipped_in_row" in metrics:
            metrics["skipped_in_row"] = int(values["skipped_in_row"])
        rate = float(self.model.optimizer.schedule(self.progress.step - 1))
        return metrics | {"learning_rate": rate, "skipped": skipped}

    def _rates(self, tokens, now):
        start = self._rates_start
        steps, seconds = now.step - start.step, max(now.seconds - start.seconds, 1e-9)
        fraction = steps / (now.step - self._interval_start)
        rates = {
            "tokens_per_second": fraction * tokens / seconds,
            "positions_per_second": steps * self.positions_per_step / seconds,
        }
        if start.waited is not None and now.waited is not None:
            rates["input_wait"] = min(max((now.waited - start.waited) / seconds, 0.0), 1.0)
        return rates | {"seconds": now.seconds - self._reported}

    def _moment(self):
        return _Moment(self.progress.step, time.monotonic(), self.model.waited)

    def _state(self, now):
        """Returns how much of the run is done: of its time if that ends it, else of its steps.

        The time of the steps that remain follows from the mean over the stage so far, scorings and
        saves included; it is None after the first execution.
        """
        progress, total = self.progress, self.progress.seconds
        if total is not None:
            used = progress.seconds_used
            text = f"step {now.step:,}, {format_duration(used)} of {format_duration(total)}"
            left = max(total - used, 0.0)
            return State(text, "training", round(used), round(total), "seconds", 1.0, left)
        text = f"step {now.step:,}/{progress.last_step:,}"
        steps = now.step - self._stage_start.step
        seconds = now.seconds - self._stage_start.seconds
        rate, left = 0.0, None
        if steps and seconds:
            rate, left = steps / seconds, progress.plan.steps_ahead(now.step) * seconds / steps
        return State(text, "training", now.step, progress.last_step, "steps", rate, left)


class _Moment(NamedTuple):
    step: int
    seconds: float
    waited: float | None


def _duration(seconds):
    return "?" if seconds is None else format_duration(seconds)


def _on_screen(line):
    """Returns a line of the log for the screen."""
    parts = []
    for label, name, form in _ON_SCREEN:
        if name in line:
            parts.append(f"{label} {'-' if line[name] is None else format(line[name], form)}")
    parts.append(f"{line['tokens_per_second']:,.0f} tok/s")
    if line["skipped"]:
        parts.append(f"skipped {line['skipped']}")
    return "  ".join(parts)
