"""From a pre-trained model to a model for a task, with the baselines to compare it with."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from albert_keras.config import AlbertConfig
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.runs.run import Run
from albert_keras.tasks import cross_validation as crossed
from albert_keras.tasks.answer_files import write_answers
from albert_keras.tasks.answer_table import SKIPPED_ROWS, write_skipped_rows
from albert_keras.tasks.baselines import baseline_answers
from albert_keras.tasks.example_report import count_labels
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import OWN_TASKS
from albert_keras.tasks.results import (
    FinetuneResult,
    best_seed,
    read_results,
    save_results,
)
from albert_keras.tasks.task_data import prepare
from albert_keras.tasks.train_seed import train_seed
from albert_keras.training.cluster import barrier, is_chief, noticing_lost_workers, num_workers
from albert_keras.training.fitting import on_first_worker
from albert_keras.training.strategy import build_strategy, choose_precision
from data_pipeline.errors import InputError
from data_pipeline.files import LOCK_FILE, check_output_folder
from data_pipeline.folder_lock import FolderLock

logger = logging.getLogger(__name__)


def finetune(
    origin: str | Path | OpenedModel | None,
    out: str | Path,
    config: FinetuneConfig | None = None,
    seeds: int | Sequence[int] = 1,
    cross_validate: bool = False,
    from_step: int | str | None = None,
    albert_config: AlbertConfig | str | Path | None = None,
    tokenizer: Any = None,
    **flags: Any,
) -> FinetuneResult:
    """Fine-tunes a pre-trained model on a task and scores it on development examples.

    The same call resumes an interrupted fine-tuning, and ends with the same weights as without the
    interruption. `out` contains the folder of a run for each seed, `seed-N`; `results.json`; and
    the answers, errors and confusion figure of the best seed.

    Args:
        origin: str, Path or None. The initial weights, see `open_weights`; or OpenedModel, which
            need no further arguments.
        out: str or Path. Folder to create or to resume in.
        config: FinetuneConfig or None. None takes all settings from `flags`.
        seeds: int or sequence of int. See `FinetuneConfig.seeds_of`.
        cross_validate: bool. Whether to train five times more, each time without a fifth of the
            rows, and to take the verdict from the answers to all rows; see `cross_validation.py`.
        from_step, albert_config, tokenizer: As `step` and the others of `open_weights`.
        **flags: Single settings by the keywords of `options_of(FinetuneConfig)`. For examples in
            memory see `fit` of the models.

    Returns:
        FinetuneResult.

    Raises:
        InputError: If files, settings and model do not fit together, or `out` contains other files
            or is being trained by another process.
        TrainingStopped, TrainingDiverged, WorkerLost: As `pretrain`.

    Example:
        result = finetune("runs/books", "runs/sst-2", task="sst-2", data_dir="glue")
        print(result.seeds[0].scores["dev"]["accuracy"])
    """
    config = FinetuneConfig.of({}, **flags) if config is None else config.with_flags(**flags)
    all_seeds = config.seeds_of(seeds)
    if cross_validate:
        _check_cross_validation(config, all_seeds)
    out = Path(out)
    _check_out(out)
    strategy = build_strategy(config.training.strategy, is_training=True)
    lock = FolderLock(out, makes_folder=True)
    with noticing_lost_workers(num_workers(strategy) > 1), lock:
        on_first_worker(strategy, out, lock.take)
        initial_weights = (
            origin
            if isinstance(origin, OpenedModel)
            else open_weights(origin, from_step, albert_config, tokenizer)
        ).lengthened(config.model.max_position_embeddings)
        data = prepare(config, initial_weights, choose_precision(strategy))
        if is_chief(strategy):
            write_skipped_rows(out, data.task.skipped_rows)
        baselines = baseline_answers(strategy, data, initial_weights)
        for name, answers in baselines.items():
            split, examples = next(iter(data.dev.items()))
            score = data.task.scores(examples.examples, answers[split])[data.task.metric]
            logger.info("%s: %s %.3f on %s", name, data.task.metric, score, split)

        outcomes = [
            train_seed(strategy, data, initial_weights, out / f"seed-{seed}", seed)
            for seed in all_seeds
        ]
        if cross_validate:
            data, outcomes[0], baselines = crossed.cross_validate(
                strategy, data, initial_weights, out, outcomes[0], baselines
            )
        result = _result(out, data, initial_weights, outcomes, baselines)
        best = outcomes[result.seeds.index(best_seed(result))]
        if is_chief(strategy):
            files = {
                split: write_answers(
                    out / split if number else out, data.task, split, examples, best.answers[split]
                )
                for number, (split, (examples, _)) in enumerate(data.dev.items())
            }
            result = result._replace(thresholds=best.thresholds, files=files)
            save_results(out, result)
            if not config.training.keep_optimizer_state:
                for run in (outcome.result for outcome in outcomes):
                    checkpoints = Run.open(out / run.path).checkpoints
                    checkpoints.keep_weights(run.best_step, run.last_step)
        barrier(strategy)  # the first worker has written
        if not is_chief(strategy):
            result = read_results(out)
    return result


def _result(out, data, initial_weights, outcomes, baselines):
    """Returns the result of trainings, compared with the answers of baselines, without files."""
    task, splits = data.task, {"train": data.train, **data.dev}
    first, (dev, _) = next(iter(data.dev.items()))
    counts = {split: count_labels(task, one.examples) for split, one in splits.items()}
    absent = {split: [name for name in one if not one[name]] for split, one in counts.items()}

    def compared(outcome):
        leads = {
            name: task.lead(dev, outcome.answers[first], answers[first])
            for name, answers in baselines.items()
        }
        return outcome.result._replace(leads=leads)

    return FinetuneResult(
        path=str(out),
        task=data.config.task.name,
        metric=task.metric,
        seeds=tuple(map(compared, outcomes)),
        baselines={
            name: {
                split: task.scores(data.dev[split].examples, one) for split, one in answers.items()
            }
            for name, answers in baselines.items()
        },
        origin=str(initial_weights),
        loaded=tuple(outcomes[0].loaded),
        examples={split: len(one.examples) for split, one in data.dev.items()},
        positive_class=task.positive_class,
        overlap={split: overlap._asdict() for split, overlap in data.overlaps.items()},
        absent={split: names for split, names in absent.items() if names},
    )


def _check_cross_validation(config, seeds):
    """Raises InputError unless the development examples are rows of the training file."""
    if config.task.dev is not None or config.task.name not in OWN_TASKS or len(seeds) > 1:
        raise InputError(
            "`cross_validate` requires one seed, and a file of your own as `train` without a `dev`."
        )


def _check_out(out):
    """Raises InputError unless `out` is new, or the folder of a fine-tuning."""
    names = {path.name for path in out.iterdir()} - {LOCK_FILE} if out.is_dir() else set()
    # A run that was being created when the process was killed has a dot before its name.
    is_started = any(name.startswith(("seed-", ".seed-")) for name in names)
    if not is_started and names != {SKIPPED_ROWS}:
        check_output_folder(out)
