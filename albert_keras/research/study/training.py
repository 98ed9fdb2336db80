"""Trains and scores one run of a study, or continues where an earlier process ended."""

import gc
import logging
import math
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow import keras

from albert_keras.distillation.distill import distill
from albert_keras.models.weight_count import count_weights
from albert_keras.research.study.folder import RESULT_FILE, content_id, read_json, write_json
from albert_keras.research.study.materials import Materials, fingerprint_of
from albert_keras.research.study.planned import PlannedRun
from albert_keras.runs.log_file import read_evaluations, read_log
from albert_keras.runs.run import Run
from albert_keras.training.errors import TrainingDiverged
from albert_keras.training.evaluate import evaluate
from albert_keras.training.pretrain import pretrain

logger = logging.getLogger(__name__)

#: Scores during the training of a run, for its curve.
_CURVE_POINTS = 10


class Job(NamedTuple):
    """A run with one of its seeds."""

    run: PlannedRun  # with final settings, but for the seed
    seed: int  # number of the seed, counted from 1
    materials: Materials

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

    def id(self, teacher: str | None = None) -> str:
        """Returns the id of the weights; `teacher` is the id of the teacher's."""
        config = self.config().model_dump(mode="json")
        return content_id(config, fingerprint_of(self.materials.records), teacher)


def run_job(job: Job, folder: Path, job_id: str, teacher: Path | None) -> None:
    """Trains and scores a run, and writes its `result.json`; scores that exist are kept.

    Args:
        folder: Folder of the run in the study, see `folder.py`.
        teacher: The teacher's training; None for a run without one.

    Raises:
        TrainingStopped: As `pretrain`.
    """
    result = read_json(folder / RESULT_FILE)
    if result is None or result["id"] != job_id:
        result = _trained(job, folder / "run", teacher) | {"id": job_id, "scores": {}}
    if result["diverged_at"] is None:
        for name, records in job.materials.held_out.items():
            fingerprint = fingerprint_of(records)
            if result["scores"].get(name, {}).get("records") != fingerprint:
                result["scores"][name] = _score(folder / "run", records) | {"records": fingerprint}
    result |= {"run": job.run.name, "seed": job.seed}
    write_json(folder / RESULT_FILE, result)


def is_complete(job: Job, result: dict[str, Any] | None) -> bool:
    """Returns whether a result has all scores of a run."""
    if result is None:
        return False
    return result["diverged_at"] is not None or all(
        result["scores"].get(name, {}).get("records") == fingerprint_of(records)
        for name, records in job.materials.held_out.items()
    )


def _trained(job, path, teacher):
    """Trains a run to its end; returns what is known of it apart from its scores."""
    config, diverged_at = job.config(), None
    logger.info("%s: %s updates", job.title, f"{config.training.steps:,}")
    records, followed = job.materials.records, job.materials.followed
    try:
        if teacher is None:
            pretrain(records, path, config, followed)
        else:
            distill(teacher, records, path, config, followed)
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
