"""A run in little, kept nowhere: does everything go together, and what will it take?"""

import logging
import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from albert_keras.benchmarks.measure import peak_mb
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.build import build_optimizer
from albert_keras.runs.run import Run
from albert_keras.serving.publish import export
from albert_keras.training.loop.reports import read_log
from albert_keras.training.pretrain import pretrain
from albert_keras.training.pretraining_step import PretrainingStep
from data_pipeline.files import check_output_folder
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles

logger = logging.getLogger(__name__)

_SCORED = 64


class DryRun(NamedTuple):
    """What a run would take.

    Attributes:
        steps, batch_size: int.
        epochs: float. How often each record would be seen.
        seconds_per_step: float. Of a step after the graph is built, here and now.
        training_seconds: float. Of all steps; scores and checkpoints come on top.
        peak_megabytes: float. Memory of this process at its highest.
        checkpoint_megabytes: float. Size of one checkpoint.
        disk_megabytes: float. Size of those that are kept.
        free_megabytes: float. Room where the run would lie.
        loss, held_out_loss: float. After two and after three steps, in nats.
        schedule: dict of int -> float. Learning rates of some steps.
        exported: bool. False for records without a tokenizer, which cannot be exported.
        seconds: float. What this trial took.
    """

    steps: int
    batch_size: int
    epochs: float
    seconds_per_step: float
    training_seconds: float
    peak_megabytes: float
    checkpoint_megabytes: float
    disk_megabytes: float
    free_megabytes: float
    loss: float
    held_out_loss: float
    schedule: dict
    exported: bool
    seconds: float

    def lines(self):
        """Says it for people: list of str."""
        rates = ", ".join(f"{step:,}: {rate:.2e}" for step, rate in self.schedule.items())
        lines = [
            f"records, three steps, save, restore, score{', export' * self.exported}: all work "
            f"({self.seconds:.0f} s)",
            f"loss {self.loss:.3f}, on records held out or first {self.held_out_loss:.3f}",
            f"learning rate at step {rates}",
            f"{self.steps:,} steps of {self.batch_size:,} see each record {self.epochs:.2f} times "
            f"and take {_duration(self.training_seconds)} ({self.seconds_per_step:.3g} s a step)",
            f"peak memory {self.peak_megabytes:,.0f} MB; checkpoints "
            f"{self.checkpoint_megabytes:,.0f} MB each, {self.disk_megabytes:,.0f} MB in all, "
            f"{self.free_megabytes:,.0f} MB free",
        ]
        if self.disk_megabytes > self.free_megabytes:
            lines.append("WARNING: that is more than there is room for")
        if not self.exported:
            lines.append("not exported: the records came without a tokenizer")
        return lines


def dry_run(data, out, config, eval_data=None, initial=None):
    """Tries a run: records, three steps, save, restore, a score, an export; then removes it all.

    Args:
        data: str or Path. Folder of records.
        out: str or Path. Where the run would lie; nothing is written there.
        config: PretrainingConfig.
        eval_data: str, Path or None. Held-out records.
        initial: InitialWeights or None. Weights to begin with.

    Returns:
        DryRun.

    Raises:
        InputError: What `pretrain` and `export` would raise.
    """
    started = time.monotonic()
    out = Path(out)
    if not (out / "run.json").is_file():  # a run that is there would go on
        check_output_folder(out)
    training = config.training.replace(
        steps_per_execution=1, report_every=1, checkpoint_every=1, time_budget=None
    )
    trial = config.replace(training=training)
    with tempfile.TemporaryDirectory(prefix="albert-keras-dry-run-") as folder:
        folder = Path(folder)
        pretrain(data, folder / "run", trial, max_steps=1, initial=initial)
        pretrain(data, folder / "run", trial, max_steps=2, initial=initial)
        run, records = Run.open(folder / "run"), RecordFiles(eval_data or data)
        log = read_log(run.path)
        held_out_loss = _score(run, records)
        has_tokenizer = (Path(data) / TOKENIZER_FOLDER).is_dir()
        if has_tokenizer:
            export(run.path, folder / "saved_models" / "trial")
        checkpoint = Path(run.checkpoints.prefix(run.checkpoints.latest())).parent
        checkpoint_bytes = sum(file.stat().st_size for file in checkpoint.iterdir())
        resolved = run.record["config"]
    seconds_per_step = log[-1]["seconds"]
    steps = config.training.steps
    return DryRun(
        steps=steps,
        batch_size=training.batch_size,
        epochs=steps * training.batch_size / len(RecordFiles(data)),
        seconds_per_step=seconds_per_step,
        training_seconds=steps * seconds_per_step,
        peak_megabytes=_peak_megabytes(),
        checkpoint_megabytes=checkpoint_bytes / 1e6,
        disk_megabytes=checkpoint_bytes * (training.keep_checkpoints + 1) / 1e6,
        free_megabytes=shutil.disk_usage(_existing(out)).free / 1e6,
        loss=log[-1]["loss"],
        held_out_loss=held_out_loss,
        schedule=_schedule(config, resolved),
        exported=has_tokenizer,
        seconds=time.monotonic() - started,
    )


def _score(run, records):
    training = run.record["config"]["training"]
    model = AlbertForPretraining(
        run.albert_config,
        sentence_head=training["sentence_order_weight"] > 0,
        dtype=training["precision"],
    )
    run.checkpoints.restore(run.checkpoints.latest(), model)
    scorer = PretrainingStep(model, training["sentence_order_weight"])
    scorer.compile()
    batches = evaluation_dataset(records, min(_SCORED, len(records))).take(1)
    return scorer.evaluate(batches, verbose=0, return_dict=True)["loss"]


def _schedule(config, resolved):
    optimizer = config.optimizer.replace(lr=resolved["optimizer"]["lr"])
    steps = config.training.steps
    schedule = build_optimizer(
        optimizer, num_steps=steps, batch_size=config.training.batch_size
    ).learning_rate
    shown = {0, optimizer.warmup_for(steps), steps // 4, steps // 2, 3 * steps // 4, steps - 1}
    return {step: float(schedule(step)) for step in sorted(shown) if step < steps}


def _peak_megabytes():
    if tf.config.list_physical_devices("GPU"):
        return tf.config.experimental.get_memory_info("GPU:0")["peak"] / 1e6
    return peak_mb()


def _existing(path):
    path = path.absolute()
    while not path.exists():
        path = path.parent
    return path


def _duration(seconds):
    if seconds < 7200:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
