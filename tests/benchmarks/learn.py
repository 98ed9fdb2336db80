"""Time to quality: held-out loss over training time, ours and the peer's, and their ratio."""

import importlib
import importlib.util
import json
import logging
import os
from pathlib import Path
from typing import Annotated

import typer
import yaml

from albert_keras import recipes
from albert_keras.formats.hugging_face_config import to_values
from albert_keras.runs.trained_data import RECORDS, check_overlap
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.strategy import build_strategy, choose_precision
from albert_keras.training.trained_records import KEPT_RECORDS, digests_of
from data_pipeline.child_processes import num_processors
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks.contest import NOT_INSTALLED
from tests.benchmarks.learning.job import Job
from tests.benchmarks.learning.report import (
    OURS,
    compare,
    draw_curves,
    learn_lines as learn_lines,
)
from tests.benchmarks.measure import in_new_process, machine, reason_of

logger = logging.getLogger(__name__)

PEER = "transformers, compiled"
PEER_RATES = (2e-4, 5e-4, 1e-3)
#: The usual recipe of the peer: AdamW with these values, linear warm-up and decay.
PEER_RECIPE = {"weight_decay": 0.01, "clip_norm": 1.0, "mask_rate": 0.15}


def benchmark_learn(
    records: Annotated[Path, typer.Option()],
    eval_data: Annotated[Path, typer.Option()],
    out: Path = Path("runs/benchmark-learn"),
    minutes: float = 30.0,
    model: str | None = None,
    recipe: str = "albert-cpu-30-minutes",
    peer_lr: list[float] = PEER_RATES,
    peer_batch_size: int = 32,
) -> dict:
    """Trains our recipe and the peer for the same time, one after the other.

    See README.md for what is equal for all.

    Args:
        records: Folder of training records.
        eval_data: Folder of held-out records with the same tokenizer.
        out: New folder for `curves.png`, `results.json` and our run.
        minutes: Training time of each, the first update included, without scoring.
        model: Named model; None takes that of the recipe.
        recipe: File of our settings, or name of a recipe.
        peer_lr: Peak learning rates of the peer; the best final loss counts.
        peer_batch_size: Sequences per update of the peer.

    Returns:
        dict for JSON: `machine`; `settings`; `learners`, a list of dicts with `label`, `rate`, and
        `points` and `facts`, see `Recorder.end`, or `failed`; `comparison`, see `compare`.

    Raises:
        InputError: If the records do not fit together, or `out` exists.
    """
    own = yaml.safe_load(_recipe_file(recipe).read_text("utf-8"))
    config = PretrainingConfig.of(own, size=model, time_budget=f"{60 * minutes:.3f}s")
    training, held_out = RecordFiles(records), RecordFiles(eval_data)
    if not (records / TOKENIZER_FOLDER).is_dir():
        raise InputError(
            f"`{records}` must contain a tokenizer, with which the peers sample masks. "
            "Build the records again."
        )
    if training.info.tokenizer_digest != held_out.info.tokenizer_digest:
        raise InputError(f"`{eval_data}` must have the tokenizer of the training records.")
    trained = digests_of(training, KEPT_RECORDS)
    check_overlap(trained, digests_of(held_out), RECORDS, str(eval_data))
    precision = choose_precision(build_strategy("single"))
    resolved = config.resolved(precision, training.info.objective != "none")
    settings = {
        "records": training.info.fingerprint,
        "eval_data": held_out.info.fingerprint,
        "minutes": minutes,
        "recipe": Path(recipe).stem,
        "config": resolved.model_dump(mode="json"),
        "peer_batch_size": peer_batch_size,
        "peer_recipe": PEER_RECIPE,
        "threads": num_processors(),
    }
    check_output_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    facts = machine()
    common = {
        "records": str(records.absolute()),
        "eval_data": str(eval_data.absolute()),
        "seconds": 60 * minutes,
        "seed": resolved.training.seed,
        "threads": num_processors(),
        "precision": resolved.training.precision,
    }
    given = config.model_dump(mode="json", exclude_unset=True)
    ours = {"config": given, "run": str((out / "run").absolute())}
    theirs = peer_settings(config, training, peer_batch_size)
    jobs = [Job(OURS, "ours", rate=resolved.optimizer.lr, settings=ours, **common)]
    jobs += [
        Job(f"{PEER}, rate {rate:g}", "transformers_trainer", rate=rate, settings=theirs, **common)
        for rate in dict.fromkeys(peer_lr)
    ]
    results = [_measured(job) for job in jobs]
    result = {
        "machine": facts,
        "settings": settings,
        "learners": results,
        "comparison": compare(results, 60 * minutes),
    }
    draw_curves(result, out / "curves.png")
    with whole_file(out / "results.json") as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return result


def peer_settings(config: PretrainingConfig, records: RecordFiles, batch_size: int) -> dict:
    """Returns the settings of the peer's trainer, without the rate.

    The peer has ALBERT of our width and depth, with one block shared by all depths and absolute
    positions.
    """
    shape = config.albert_config(records.info.vocab_size).replace(
        sharing="all",
        num_hidden_groups=1,
        inner_group_num=1,
        hidden_act="gelu",
        position_embedding="absolute",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        embedding_projection="always",
    )
    return PEER_RECIPE | {"config": to_values(shape, ("masked_lm",)), "batch_size": batch_size}


def _recipe_file(recipe):
    return Path(recipe) if Path(recipe).is_file() else recipes.path(recipe)


def _measured(job):
    """Trains a contestant; returns its results."""
    found = {"label": job.label, "rate": job.rate}
    if job.module != "ours" and not all(map(importlib.util.find_spec, ("torch", "transformers"))):
        return found | {"failed": NOT_INSTALLED}
    logger.info("%s, %.3g min of training", job.label, job.seconds / 60)
    try:
        return found | in_new_process(train_in_process, job)
    except Exception as error:  # whatever a library raises: the others can be measured
        logger.warning("%s cannot be measured: %s", job.label, reason_of(error))
        return found | {"failed": reason_of(error)}


def train_in_process(job: Job) -> dict:
    """Runs the trainer of a job, in a process of its own."""
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", USE_TF="0")
    return importlib.import_module(f"tests.benchmarks.learning.{job.module}").train(job)
