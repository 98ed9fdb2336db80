"""From a pre-trained model to a model for a task, with the baselines to compare it with."""

import dataclasses
import logging
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import RESULTS, RUN_RECORD
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import read_record
from albert_keras.tasks.answer_files import write_answers
from albert_keras.tasks.answer_table import SKIPPED_ROWS, write_skipped_rows
from albert_keras.tasks.baselines import similarity_baselines, train_bag_of_words
from albert_keras.tasks.example_report import count_labels
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.given import settings_of
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
from data_pipeline.files import LOCK_FILE, check_output_folder
from data_pipeline.folder_lock import FolderLock

logger = logging.getLogger(__name__)


def finetune(
    origin: str | Path | OpenedModel | None,
    out: str | Path,
    config: FinetuneConfig | None = None,
    seeds: int | Sequence[int] = 1,
    random_baseline: bool = True,
    from_step: int | str | None = None,
    albert_config: AlbertConfig | str | Path | None = None,
    tokenizer: Any = None,
    allow_changes: Iterable[str] = (),
    bag_of_words: bool = True,
    teaching: Any = None,
    **flags: Any,
) -> FinetuneResult:
    """Fine-tunes a pre-trained model on a task and scores it on development examples.

    The same call resumes an interrupted fine-tuning, and ends with the same weights as without the
    interruption. `out` contains the folder of a run for each seed, `seed-N`, and of the one from
    random weights, `random`; `results.json`; and the answers, errors and confusion figure of the
    best seed.

    Args:
        origin: str, Path or None. The initial weights, see `open_weights`; or OpenedModel, which
            need no further arguments.
        out: str or Path. Folder to create or to resume in.
        config: FinetuneConfig or None. None takes all settings from `flags`.
        seeds: int or sequence of int. See `FinetuneConfig.seeds_of`.
        random_baseline: bool. Whether to train the same model from random weights, too, with the
            first seed, to measure what the pre-training is worth. For similarity, the encoder
            before the training is scored instead, see `similarity_baselines`.
        from_step, albert_config, tokenizer: As `step` and the others of `open_weights`.
        allow_changes: iterable of str. See `Run.prepare`.
        bag_of_words: bool. Whether to train the bag-of-words baseline of `bag_of_words_answers`,
            too, if the task classifies or scores texts.
        teaching: TaskTeaching or None. The teacher of a distillation, see `distillation/task.py`.
        **flags: Single settings by the keywords of `options_of(FinetuneConfig)`. Besides files,
            `train` and `dev` may be examples in memory: (inputs, labels) as `fit` of a model takes
            them, a tf.data.Dataset of both, or a DataFrame with columns `text`, `pair`, `label`.

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
    in_files = str | os.PathLike | None
    given = {
        name: flags.pop(name)
        for name in ("train", "dev")
        if not isinstance(flags.get(name), in_files)
    }
    if "train" in given:
        flags = settings_of(flags, given["train"])
    config = FinetuneConfig.of({}, **flags) if config is None else config.with_flags(**flags)
    all_seeds = config.seeds_of(seeds)
    out = Path(out)
    _check_out(out)
    for record in sorted(out.glob(f"seed-*/{RUN_RECORD}"))[:1]:
        was = read_record(record)["config"]["optimizer"]
        config = config.replace(optimizer=config.optimizer.as_started(was))
    strategy = build_strategy(config.training.strategy, is_training=True)
    lock = FolderLock(out, makes_folder=True)
    with noticing_lost_workers(num_workers(strategy) > 1), lock:
        on_first_worker(strategy, out, lock.take)
        initial_weights = (
            origin
            if isinstance(origin, OpenedModel)
            else open_weights(origin, from_step, albert_config, tokenizer)
        ).lengthened(config.model.max_position_embeddings)
        data = prepare(config, initial_weights, choose_precision(strategy), given)
        data = data if teaching is None else teaching.taught(data)
        if is_chief(strategy):
            write_skipped_rows(out, data.task.skipped_rows)
        words = _bag_of_words(data) if bag_of_words and is_chief(strategy) else None
        is_similarity = data.task.kind == "similarity"
        baselines = similarity_baselines(strategy, data, initial_weights) if is_similarity else {}
        outcomes = [
            train_seed(strategy, data, initial_weights, out / f"seed-{seed}", seed, allow_changes)
            for seed in all_seeds
        ]
        has_random = random_baseline and initial_weights.kind != "random" and not is_similarity
        random = _finished_baseline(out, all_seeds[0]) if has_random else None
        if has_random and random is None:
            logger.info("Training the same model from random weights (`random_baseline`).")
            untrained = dataclasses.replace(
                initial_weights, path="random", kind="random", step=None, _open=None
            )
            random = train_seed(
                strategy, data, untrained, out / "random", all_seeds[0], allow_changes
            ).result
        splits = {"train": data.train, **data.dev}
        counts = {split: count_labels(data.task, one.examples) for split, one in splits.items()}
        absent = {split: [name for name in one if not one[name]] for split, one in counts.items()}
        result = FinetuneResult(
            path=str(out),
            task=config.task.name,
            metric=data.task.metric,
            seeds=tuple(outcome.result for outcome in outcomes),
            majority=_majority(data),
            random=random,
            origin=str(initial_weights),
            loaded=tuple(outcomes[0].loaded),
            examples={split: len(dev.examples) for split, dev in data.dev.items()},
            bag_of_words=words,
            positive_class=data.task.positive_class,
            overlap={split: overlap._asdict() for split, overlap in data.overlaps.items()},
            baselines=baselines,
            absent={split: names for split, names in absent.items() if names},
        )
        best = next(outcome for outcome in outcomes if outcome.result == best_seed(result))
        result = result._replace(tuned=best.tuned)
        if is_chief(strategy):
            files = {
                split: write_answers(
                    out / split if number else out, data.task, split, examples, best.answers[split]
                )
                for number, (split, (examples, _)) in enumerate(data.dev.items())
            }
            result = result._replace(files=files)
            save_results(out, result)
            if not config.training.keep_optimizer_state:
                _keep_best_weights(out, result)
        barrier(strategy)  # the first worker has written
        if not is_chief(strategy):
            result = read_results(out)
    return result


def _check_out(out):
    """Raises InputError unless `out` is new, or the folder of a fine-tuning."""
    names = {path.name for path in out.iterdir()} - {LOCK_FILE} if out.is_dir() else set()
    # A run that was being created when the process was killed has a dot before its name.
    is_started = any(name.startswith(("seed-", ".seed-")) for name in names)
    if not is_started and names != {SKIPPED_ROWS}:
        check_output_folder(out)


def _finished_baseline(out, seed):
    """Returns the result of the random baseline if its weights were removed, otherwise None.

    The run of the same seed from the initial weights was compared with the settings already.
    """
    run = out / "random"
    is_removed = (run / RUN_RECORD).is_file() and not (run / "checkpoints").is_dir()
    found = read_results(out).random if is_removed and (out / RESULTS).is_file() else None
    return found if found is not None and found.seed == seed else None


def _keep_best_weights(out, result):
    """Removes what only training needs: all but the weights of the best step of each seed."""
    for seed in result.seeds:
        Run.open(out / seed.path).checkpoints.keep_weights(seed.best_step, seed.last_step)
    shutil.rmtree(out / "random" / "checkpoints", ignore_errors=True)


def _majority(data):
    """Scores the most frequent answer, by split; None if the task has none."""
    scores = {}
    for split, (examples, _) in data.dev.items():
        guesses = data.task.guesses(data.train.examples, examples)
        if guesses is None:
            return None
        scores[split] = data.task.scores(examples, guesses)
    return scores


def _bag_of_words(data):
    """Trains and scores the bag-of-words baseline; None if it does not suit the task."""
    examples = {split: dev.examples for split, dev in data.dev.items()}
    words = train_bag_of_words(data.task, data.train.examples, examples)
    if words is not None:
        first, metric = next(iter(examples)), data.task.metric
        logger.info(
            "bag of words, the score to beat: %s %.3f on %s, trained on %s examples in %.1f s "
            "(`bag_of_words=False` skips it)",
            metric,
            words.scores[first][metric],
            first,
            f"{words.examples:,}",
            words.seconds,
        )
    return words
