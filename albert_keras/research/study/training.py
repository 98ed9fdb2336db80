"""Trains and scores one run of a study, or continues where an earlier process ended."""

import gc
import logging
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import keras

from albert_keras.distillation.distill import distill
from albert_keras.models.weight_count import count_weights
from albert_keras.research.study.materials import (
    Materials,
    content_id,
    fingerprint_of,
    read_json,
    write_json,
)
from albert_keras.research.study.planned import PlannedRun
from albert_keras.runs.log_file import read_evaluations, read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingDiverged
from albert_keras.training.evaluate import evaluate
from albert_keras.training.pretrain import pretrain
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

_RESULT_FILE = "result.json"
#: Scores during the training of a run, for its curve.
_CURVE_POINTS = 10


class Job(NamedTuple):
    """A run with one of its seeds, in the folder of a study."""

    out: Path  # of the study
    run: PlannedRun  # with final settings, but for the seed
    seed: int  # number of the seed, counted from 1
    materials: Materials
    teacher: "Job | None"

    @property
    def title(self) -> str:
        """str. Name of the run, with its seed."""
        return f"{self.run.name}, seed {self.seed}"

    def config(self):
        """Returns the settings of the training: PretrainingConfig or DistillationConfig."""
        training = self.run.config.training
        every = max(1, math.ceil(training.steps / _CURVE_POINTS))
        # Seed 1 is the seed in the settings; the records are the same for all seeds.
        changed = training.replace(seed=training.seed + self.seed - 1, evaluate_every=every)
        return self.run.config.replace(training=changed)

    @property
    def id(self) -> str:
        """str. What decides the weights."""
        config = self.config().model_dump(mode="json")
        teacher = self.teacher and self.teacher.id
        return content_id(config, fingerprint_of(self.materials.records), teacher)

    @property
    def folder(self) -> Path:
        """Path. The folder that has the same id, whatever its name, or a new one."""
        if found := sorted((self.out / "runs").glob(f"*-{self.id}")):
            return found[0]
        slug = re.sub(r"[^a-z0-9]+", "-", self.run.name.lower()).strip("-") or "run"
        return self.out / "runs" / f"{slug}-seed-{self.seed}-{self.id}"

    def result(self) -> dict[str, Any]:
        """Returns what is known of the trained run; {} if it was not trained."""
        return read_json(self.folder / _RESULT_FILE) or {}

    @property
    def is_complete(self) -> bool:
        """bool. Whether the result has all scores of the run."""
        result = self.result()
        return bool(result) and (
            result["diverged_at"] is not None
            or all(
                result["scores"].get(name, {}).get("records") == fingerprint_of(records)
                for name, records in self.materials.held_out.items()
            )
        )


def run_job(job: Job) -> None:
    """Trains and scores a run, and writes its `result.json`; scores that exist are kept.

    Raises:
        InputError: If the training of its teacher diverged.
        TrainingStopped: As `pretrain`.
    """
    teacher, folder, job_id = job.teacher, job.folder, job.id
    if teacher is not None and (diverged_at := teacher.result()["diverged_at"]) is not None:
        raise InputError(
            f"The training of `{teacher.title}`, the teacher of `{job.run.name}`, diverged at "
            f"update {diverged_at:,}. Lower the learning rate of the teacher."
        )
    result = job.result()
    if result.get("id") != job_id:
        result = _trained(job, folder / "run") | {"id": job_id, "scores": {}}
    if result["diverged_at"] is None:
        for name, records in job.materials.held_out.items():
            fingerprint = fingerprint_of(records)
            if result["scores"].get(name, {}).get("records") != fingerprint:
                result["scores"][name] = _score(folder / "run", records) | {"records": fingerprint}
    result |= {"run": job.run.name, "seed": job.seed}
    write_json(folder / _RESULT_FILE, result)


def _trained(job, path):
    """Trains a run to its end; returns what is known of it apart from its scores."""
    config, diverged_at = job.config(), None
    logger.info("%s: %s updates", job.title, f"{config.training.steps:,}")
    records, followed = job.materials.records, job.materials.followed
    try:
        if job.teacher is None:
            pretrain(records, path, config, followed)
        else:
            distill(job.teacher.folder / "run", records, path, config, followed)
    except TrainingDiverged as error:
        logger.warning("%s diverged: %s", job.title, error)
        diverged_at = error.step
    finally:
        keras.backend.clear_session()
        gc.collect()
    shape = Run.open(path).albert_config
    every, last = config.training.evaluate_every, config.training.steps
    # Other steps are those at which an earlier process was stopped.
    curve = {
        step: scores
        for step, scores in read_evaluations(path)
        if "path" not in scores and (step % every == 0 or step == last)
    }
    return {
        "updates": config.training.steps,
        "batch_size": config.training.batch_size,
        "parameters": count_weights(shape, masked_lm_head=False, sentence_head=False).total,
        "diverged_at": diverged_at,
        "curve": [[step, curve[step]["masked_lm_accuracy"]] for step in sorted(curve)],
        "seconds": sum(line["seconds"] for line in read_log(path)),
    }


def _score(path, records):
    """Returns the scores of a trained model on held-out records."""
    scores = evaluate(path, records)
    keras.backend.clear_session()
    return {
        "masked_lm_accuracy": scores.masked_lm_accuracy,
        "masked_lm_loss": scores.masked_lm_loss,
        "predictions": scores.num_predictions,
        "constant_guess": scores.unigram_accuracy,
        "sentence_accuracy": scores.sentence_order_accuracy,
        "sentences": scores.num_records,
        "chance": scores.sentence_order_chance,
        "trained_on": None if scores.overlap is None else scores.overlap["normalised"],
    }
