"""Time to quality: held-out loss over training time, ours and the peers', and their ratio."""

import json
import logging
from collections.abc import Sequence
from pathlib import Path

from albert_keras.benchmarks.contest import chosen_peers
from albert_keras.benchmarks.learning.comparison import compare
from albert_keras.benchmarks.learning.curves import draw_learning, write_curves_csv
from albert_keras.benchmarks.learning.export import write_arrays
from albert_keras.benchmarks.learning.job import Job, read_points
from albert_keras.benchmarks.learning.learners import (
    PEER_RATES,
    PEER_RECIPE,
    PEERS,
    USUAL_PEERS,
    learners_for,
    resolve,
)
from albert_keras.benchmarks.learning.process import python_for, run_trainer
from albert_keras.benchmarks.measure import machine
from albert_keras.planning.suggestion import completed, suggest_config
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.trained_records import KEPT_RECORDS, check_held_out, digests_of
from data_pipeline.building.workers import num_processors
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file
from data_pipeline.records.record_folder import RecordFiles

logger = logging.getLogger(__name__)

_SETTINGS, _RESULTS = "settings.json", "results.json"


def benchmark_learn(
    records: str | Path,
    eval_data: str | Path,
    out: str | Path,
    minutes: float = 30.0,
    config: PretrainingConfig | None = None,
    recipe: str = "default recipe",
    rounds: int = 1,
    peers: Sequence[str] = USUAL_PEERS,
    peer_rates: Sequence[float] = PEER_RATES,
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
        config: Our recipe; None takes the defaults of `pretrain`. Its time budget is `minutes`, for
            which a recipe without a model gets one, see `suggest_config`.
        recipe: What to call it.
        rounds: Number of trainings of each, with different seeds.
        peers: Some of `PEERS`; or "all" or "none" alone.
        peer_rates: Peak learning rates of each peer; the best final loss counts.
        peer_batch_size: Sequences per update of the peers.

    Returns:
        dict for JSON: `machine`; `settings`; `learners`, a list of dicts with `label`, `peer`,
        `rate`, and `rounds` (number -> `points` and `facts`, see `Recorder`) or `failed`;
        `comparison`, see `compare`; `folder`.

    Raises:
        InputError: If the records do not fit together, or `out` has other settings.
    """
    config = (config or PretrainingConfig()).with_flags(time_budget=f"{60 * minutes:.3f}s")
    out = Path(out)
    names = chosen_peers(peers, PEERS)
    training, held_out = RecordFiles(records), RecordFiles(eval_data)
    _check_same_tokenizer(training.info, held_out)
    check_held_out(held_out, (digests_of(training, KEPT_RECORDS),))
    config = _with_model(config, records, out)  # last, as it measures this machine
    learners = learners_for(training, held_out, config, recipe, names, peer_rates, peer_batch_size)
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
    python = python_for(learner.needs)
    if python is None:
        reason = "not installed: pip install albert-keras[bench]"
    else:
        logger.info(
            "round %d: %s, %.3g min of training", number, learner.label, settings["minutes"]
        )
        job = Job(
            seconds=60 * settings["minutes"],
            seed=seed,
            threads=settings["threads"],
            precision=learner.precision,
            arrays=str((out / "arrays").absolute()),
            points=str(_points_path(out, learner, number).absolute()),
            settings=learner.settings,
            started=0.0,
        )
        reason = run_trainer(learner.module, python, job, learner.label)
    if reason is not None:
        logger.warning("%s cannot be measured: %s", learner.label, reason)
    return reason


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
