"""Tries a run with a few steps: does everything fit together, and what will the run cost?"""

import shutil
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.runs.trained_data import RECORDS, check_overlap
from albert_keras.serving.publish import export
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.evaluate import build_scorer, score
from albert_keras.training.pretrain import pretrain
from albert_keras.training.process_memory import peak_mb
from albert_keras.training.stage_plan import stage_ends
from albert_keras.training.stages import stages_of
from albert_keras.training.trained_records import digests_of, training_digests
from data_pipeline.files import check_output_folder
from data_pipeline.progress import format_duration
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles

_SCORED = 64
#: Steps of the trial, or of each stage: the first one builds the graph.
_STEPS = 3


class StageCost(NamedTuple):
    """What a stage of a run would cost; a run without stages is a single one."""

    steps: int
    batch_size: int
    max_seq_length: int  # S
    epochs: float  # how often each of its records would be seen in it
    seconds_per_step: float  # on this machine, after the graph is built


class DryRun(NamedTuple):
    """What a run would cost."""

    steps: int
    training_seconds: float  # time of all steps, without scores and checkpoints
    peak_megabytes: float  # largest memory of this process; with a GPU, of its tensors there
    on_gpu: bool
    checkpoint_megabytes: float  # size of one checkpoint
    disk_megabytes: float  # size of all checkpoints that are kept
    free_megabytes: float  # free disk space for the run
    loss: float  # of the third step, in nats
    held_out_loss: float  # after it, in nats; on the first records if none are held out
    seconds: float  # time of the dry run
    stages: tuple[StageCost, ...]

    def lines(self):
        """Returns the result as text (list of str)."""
        lines = [
            "reading records, training, saving, resuming, scoring and exporting succeeded in "
            f"{format_duration(self.seconds)}",
            f"loss {self.loss:.3f}, on held-out records (or the first ones) "
            f"{self.held_out_loss:.3f}",
            f"{self.steps:,} steps take {format_duration(self.training_seconds)}",
        ]
        for number, stage in enumerate(self.stages, 1):
            name = f"stage {number} of {len(self.stages)}: " if len(self.stages) > 1 else ""
            lines.append(
                f"{name}{stage.steps:,} steps of {stage.batch_size:,} records of "
                f"{stage.max_seq_length} tokens see each record {stage.epochs:.2f} times "
                f"({format_duration(stage.seconds_per_step)} per step)"
            )
        device = "of the GPU " if self.on_gpu else ""
        lines.append(
            f"peak memory {device}{self.peak_megabytes:,.0f} MB; checkpoints "
            f"{self.checkpoint_megabytes:,.0f} MB each, {self.disk_megabytes:,.0f} MB in total, "
            f"{self.free_megabytes:,.0f} MB free"
        )
        if self.disk_megabytes > self.free_megabytes:
            lines.append("WARNING: the checkpoints need more disk space than is free")
        return lines


def dry_run(
    data: str | Path,
    out: str | Path,
    config: PretrainingConfig,
    eval_data: str | Path | None = None,
    initial: OpenedModel | None = None,
) -> DryRun:
    """Tries a run: trains, saves, resumes, scores and exports in a temporary folder.

    It makes three steps, of a run with stages three of each.

    Nothing is written to `out`. Raises InputError as `pretrain`, which explains the arguments, and
    `export`.
    """
    started = time.monotonic()
    out = Path(out)
    if not (out / "run.json").is_file():  # an existing run would be resumed
        check_output_folder(out)
    records = scored = RecordFiles(data)
    if eval_data is not None:
        own = [RecordFiles(stage.data) for stage in config.stages if stage.data is not None]
        trained = training_digests([records, *own], out, initial)
        scored = RecordFiles(eval_data)
        check_overlap(trained, digests_of(scored), RECORDS, str(scored.folder))
    training = config.training.replace(
        steps_per_execution=1,
        report_every=1,
        checkpoint_every=1,
        time_budget=None,
    )
    trial, num_stages = config.replace(training=training), len(config.stages)
    if num_stages:
        trial = trial.replace(
            training=training.replace(steps=_STEPS * num_stages),
            optimizer=config.optimizer.replace(warmup_steps=0),
            stages=[stage.replace(share=1 / num_stages) for stage in config.stages],
        )
    with tempfile.TemporaryDirectory(prefix="albert-keras-dry-run-") as folder:
        folder = Path(folder)
        pretrain(data, folder / "run", trial, max_steps=1, initial=initial)
        rest = _STEPS * max(1, num_stages) - 1
        pretrain(data, folder / "run", trial, max_steps=rest, initial=initial)
        run = Run.open(folder / "run")
        log = read_log(run.path)
        batches = evaluation_dataset(scored, min(_SCORED, len(scored))).take(1)
        with scored.failures_named():
            trained = open_weights(run.path).build()
            held_out_loss = score(build_scorer(trained, run), batches)["loss"]
        export(run.path, folder / "saved_models" / "trial")
        checkpoint = run.checkpoints.folder(run.checkpoints.latest())
        checkpoint_bytes = sum(file.stat().st_size for file in checkpoint.iterdir())
        stages = _costs(config, records, run.albert_config, log)
    has_gpu = bool(tf.config.list_physical_devices("GPU"))
    gpu_memory = tf.config.experimental.get_memory_info("GPU:0") if has_gpu else None
    existing = next(path for path in (out, *out.absolute().parents) if path.exists())
    return DryRun(
        steps=config.training.steps,
        training_seconds=sum(stage.steps * stage.seconds_per_step for stage in stages),
        peak_megabytes=gpu_memory["peak"] / 1e6 if gpu_memory else peak_mb(),
        on_gpu=has_gpu,
        checkpoint_megabytes=checkpoint_bytes / 1e6,
        disk_megabytes=checkpoint_bytes * (training.keep_checkpoints + 1) / 1e6,
        free_megabytes=shutil.disk_usage(existing).free / 1e6,
        loss=log[:_STEPS][-1]["loss"],
        held_out_loss=held_out_loss,
        seconds=time.monotonic() - started,
        stages=stages,
    )


def _costs(config, records, albert_config, log):
    """Returns the StageCost of each stage from the log of the trial."""
    shares = [stage.share for stage in config.stages] or [1.0]
    ends = stage_ends(config.training.steps, shares, config.training.steps_per_execution)
    costs = []
    for number, stage in enumerate(stages_of(config, records, albert_config)):
        steps = ends[number] - (ends[number - 1] if number else 0)
        batch_size = stage.training.batch_size
        costs.append(
            StageCost(
                steps=steps,
                batch_size=batch_size,
                max_seq_length=stage.records.info.max_seq_length,
                epochs=steps * batch_size / len(stage.records),
                seconds_per_step=log[_STEPS * (number + 1) - 1]["seconds"],
            )
        )
    return tuple(costs)
