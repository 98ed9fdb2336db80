"""Time to quality: held-out loss over training time, ours and the peers', and their ratio."""

import importlib
import importlib.util
import json
import logging
import os
from pathlib import Path

import yaml

from albert_keras import recipes
from albert_keras.machine.plan import completed, suggest_config
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.trained_records import KEPT_RECORDS, check_held_out, digests_of
from data_pipeline.building.workers import num_processors
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks.contest import NOT_INSTALLED, chosen_peers, end_with_parent
from tests.benchmarks.learning.comparison import compare
from tests.benchmarks.learning.curves import draw_learning, write_curves_csv
from tests.benchmarks.learning.export import write_arrays
from tests.benchmarks.learning.job import Job, read_points
from tests.benchmarks.learning.learners import (
    PEER_RATES,
    PEER_RECIPE,
    PEERS,
    learners_for,
    resolve,
)
from tests.benchmarks.learning.lines import learn_lines as learn_lines
from tests.benchmarks.measure import in_new_process, machine

logger = logging.getLogger(__name__)

_SETTINGS, _RESULTS = "settings.json", "results.json"


def benchmark_learn(
    records: Path,
    eval_data: Path,
    out: Path = Path("runs/benchmark-learn"),
    minutes: float = 30.0,
    model: str | None = None,
    recipe: str | None = None,
    rounds: int = 1,
    peers: list[str] = PEERS[:1],
    peer_lr: list[float] = PEER_RATES,
    peer_batch_size: int = 32,
) -> dict:
    """Trains our recipe and the peers for the same time, one after the other.

    What is finished stays in `out`: the same call runs the contestants that are still missing. See
    README.md for what is equal for all.

    Args:
        records: Folder of training records.
        eval_data: Folder of held-out records with the same tokenizer.
        out: Folder for `curves.csv`, `curves.png`, `results.json` and the trainings.
        minutes: Training time of each, the first update included, without scoring.
        model: Named model; None takes that of the recipe, or the one for `minutes`, see
            `suggest_config`.
        recipe: File of our settings, or name of a recipe; None takes the defaults of `pretrain`.
        rounds: Number of trainings of each, with different seeds.
        peers: Some of `PEERS`; or "all" or "none" alone.
        peer_lr: Peak learning rates of each peer; the best final loss counts.
        peer_batch_size: Sequences per update of the peers.

    Returns:
        dict for JSON: `machine`; `settings`; `learners`, a list of dicts with `label`, `peer`,
        `rate`, and `rounds` (number -> `points` and `facts`, see `Recorder`) or `failed`;
        `comparison`, see `compare`; `folder`.

    Raises:
        InputError: If the records do not fit together, or `out` has other settings.
    """
    own = {} if recipe is None else yaml.safe_load(_recipe_file(recipe).read_text("utf-8"))
    recipe = "default recipe" if recipe is None else Path(recipe).stem
    config = PretrainingConfig.of(own, size=model, time_budget=f"{60 * minutes:.3f}s")
    names = chosen_peers(peers, PEERS)
    training, held_out = RecordFiles(records), RecordFiles(eval_data)
    _check_same_tokenizer(training.info, held_out)
    check_held_out(held_out, (digests_of(training, KEPT_RECORDS),))
    config = _with_model(config, records, out)  # last, as it measures this machine
    learners = learners_for(training, held_out, config, recipe, names, peer_lr, peer_batch_size)
    settings = {
        "records": training.info.fingerprint,
        "eval_data": held_out.info.fingerprint,
        "minutes": minutes,
        "recipe": recipe,
        "config": resolve(config, training).model_dump(mode="json"),
        "peer_batch_size": peer_batch_size,
        "peer_recipe": PEER_RECIPE,
        "threads": num_processors(),
    }
    _open_folder(out, settings)
    facts = machine()
    if names:
        write_arrays(training, held_out, out / "arrays")
    failed = {}
    for number in range(1, rounds + 1):
        for learner in learners if number % 2 else reversed(learners):
            if read_points(_points_path(out, learner, number))[1] is not None:
                continue
            reason = _run(learner, out, number, settings, config.training.seed + number - 1)
            if reason is None:  # an interruption keeps the files of what is finished
                _write(_result(out, learners, failed, rounds, settings, facts), out)
            else:
                failed[learner.label] = reason
    result = _result(out, learners, failed, rounds, settings, facts)
    _write(result, out)
    return result


def _recipe_file(recipe):
    return Path(recipe) if Path(recipe).is_file() else recipes.path(recipe)


def _with_model(config, records, out):
    """Returns our recipe with a model: the model of earlier measurements in `out`, if any."""
    path = out / _SETTINGS
    if path.is_file():
        return completed(config, json.loads(path.read_text(encoding="utf-8"))["config"])
    return suggest_config(records, config)


def _check_same_tokenizer(info, held_out):
    if info.tokenizer_digest != held_out.info.tokenizer_digest:
        raise InputError(
            f"`{held_out.folder}` must be built with the tokenizer of the training records. "
            "Received: another tokenizer_digest in dataset_info.json. Build both with the same "
            "--tokenizer."
        )


def _open_folder(out, settings):
    """Creates the folder of a benchmark, or checks that it was created with the same settings."""
    path = out / _SETTINGS
    if path.is_file():
        known = json.loads(path.read_text(encoding="utf-8"))
        current = json.loads(json.dumps(settings))
        other = [name for name in current if known.get(name) != current[name]]
        if other:
            raise InputError(
                f"The settings must be the same as for the measurements in `{out}`. Received: "
                f"another value of {' and '.join(other)} than in {path}. Choose another --out."
            )
        return
    check_output_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _points_path(out, learner, number):
    return out / "trainings" / f"round-{number}" / learner.folder / "points.jsonl"


def _run(learner, out, number, settings, seed):
    """Trains a contestant; returns None, or why it failed."""
    logger.info("round %d: %s, %.3g min of training", number, learner.label, settings["minutes"])
    points = _points_path(out, learner, number)
    points.parent.mkdir(parents=True, exist_ok=True)
    job = Job(
        seconds=60 * settings["minutes"],
        seed=seed,
        threads=settings["threads"],
        precision=learner.precision,
        arrays=str((out / "arrays").absolute()),
        points=str(points.absolute()),
        settings=learner.settings,
    )
    if not all(map(importlib.util.find_spec, learner.needs)):
        reason = NOT_INSTALLED
    else:
        try:
            in_new_process(train_in_process, learner.module, job)
            return None
        except Exception as error:  # whatever a library raises: the others can be measured
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    logger.warning("%s cannot be measured: %s", learner.label, reason)
    return reason


def train_in_process(module: str, job: Job):
    """Runs the trainer of a module, in a process of its own."""
    end_with_parent()
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", USE_TF="0")
    os.dup2(2, 1)  # what libraries print is not the result
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    importlib.import_module(module).train(job)


def _result(out, learners, failed, rounds, settings, facts):
    """Returns what `benchmark_learn` does, of what is finished so far."""
    results = []
    for learner in learners:
        found = {"label": learner.label, "peer": learner.peer, "rate": learner.rate, "rounds": {}}
        for number in range(1, rounds + 1):
            points, end = read_points(_points_path(out, learner, number))
            if end is not None:
                found["rounds"][number] = {"points": points, "facts": end}
        if learner.label in failed:
            found["failed"] = failed[learner.label]
        results.append(found)
    return {
        "machine": facts,
        "settings": settings,
        "learners": results,
        "comparison": compare(results, 60 * settings["minutes"]),
        "folder": str(out),
    }


def _write(result, out):
    settings, learners = result["settings"], result["learners"]
    write_curves_csv(learners, out / "curves.csv")
    title = f"{settings['recipe']}, {settings['minutes']:.3g} minutes of training"
    draw_learning(learners, result["comparison"], title, out / "curves.png")
    with whole_file(out / _RESULTS) as temporary:
        temporary.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
