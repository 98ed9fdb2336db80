"""One training of a fine-tuning: from a seed to its best weights, and their answers."""

import logging
import time
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.runs.checkpoints import FINISHED_AT
from albert_keras.runs.log_file import keep_log_until, read_log
from albert_keras.runs.trained_data import ROWS, Digests, save_digests
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.results import SeedResult
from albert_keras.tasks.score_dev import ScoreDev, is_enough, score_splits, values_so_far
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_data import TaskData
from albert_keras.tasks.trainer import TaskTrainer
from albert_keras.training.batches import check_batch_size
from albert_keras.training.build import compile_step, model_settings, should_skip_padding
from albert_keras.training.cluster import broadcast, is_chief
from albert_keras.training.fitting import compilation, create_or_resume, fit, report_loaded
from albert_keras.training.strategy import describe_devices
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)


class SeedOutcome(NamedTuple):
    """A training that has ended."""

    result: SeedResult
    answers: dict[str, list[Any]]  # by development split, of the best weights
    thresholds: dict[str, float]  # see `Task.fit_thresholds`
    loaded: list[str]  # what was loaded from the initial weights


def train_seed(
    strategy: tf.distribute.Strategy,
    data: TaskData,
    initial_weights: OpenedModel,
    out: Path,
    seed: int,
) -> SeedOutcome:
    """Trains with one seed, or resumes the training, and evaluates its best weights.

    Args:
        out: Folder of the run.
        seed: Determines head, order of the examples and dropout.

    Raises:
        InputError, TrainingStopped, TrainingDiverged, WorkerLost: As `pretrain`.
    """
    started = time.monotonic()
    config, task = data.config.with_flags(seed=seed), data.task
    training, rows = config.training, data.train.rows
    check_batch_size(strategy, training)
    overlaps = {split: overlap._asdict() for split, overlap in data.overlaps.items()}
    description = initial_weights.describe() | data.fingerprints
    description |= {"overlap": overlaps, "language": initial_weights.language}
    source = ExampleSource(rows, data.tokenizer, training, description)
    statistics = {
        "positions": len(rows) * rows.max_seq_length,
        "real_positions": int(rows.lengths.sum()),
    }
    skips_padding = should_skip_padding(strategy, training, statistics)
    with strategy.scope():
        trainer = build_trained(config, data.albert_config, task, data.tokenizer, skips_padding)
        model = trainer.model
        # Loading comes first: weights that do not fit must leave no folder.
        loaded = initial_weights.load(model, with_head=True)
        context = create_or_resume(strategy, out, config, data.albert_config, source, trainer)
        run, first_step = context.run, context.first_step
        if first_step == 0:
            report_loaded(context, loaded.lines())
            if training.initial_output_bias == "frequencies":
                model.initialize_output_bias(rows.targets)
        if is_chief(strategy):
            # A killed process may have truncated the last line.
            keep_log_until(run.path, first_step)
            save_digests(run.path, ROWS, Digests.merged(data.trained))
        predictor = RowPredictor.of_model(model, training.eval_batch_size)
        scores = ScoreDev(
            run.path,
            task,
            data.dev,
            model,
            predictor,
            training,
            context.progress,
            is_chief(strategy),
        )
    logger.info(
        "seed %d: %s steps of %d (%.3g epochs), %s at a learning rate of %.2g, %s, %s on %s",
        seed,
        f"{training.steps:,}",
        training.batch_size,
        training.epochs,
        config.optimizer.name,
        config.optimizer.lr,
        training.precision,
        compilation(context),
        describe_devices(strategy),
    )
    values = values_so_far(run.path, task.metric, first_step)
    is_finished = FINISHED_AT in context.state or is_enough(values, training.patience)
    if broadcast(strategy, int(is_finished)):
        logger.info("`%s` is complete, there is nothing left to train", run.path)
        last_step = first_step
    else:
        last_step = fit(context, scores)
    best_step = run.checkpoints.best() if is_chief(strategy) else None
    best_step = broadcast(strategy, best_step or 0) or last_step
    with strategy.scope():
        run.checkpoints.restore(best_step, model)
    scored = score_splits(task, data.dev, model, predictor)
    first = next(iter(data.dev))
    if is_chief(strategy):
        run.save_model(model)  # with the thresholds that `score_splits` has fitted
    values = values_so_far(run.path, task.metric, last_step)
    # The log has the seconds of earlier calls, which were interrupted.
    logged = sum(line.get("seconds", 0) for line in read_log(run.path))
    result = SeedResult(
        seed=seed,
        path=run.path.name,
        best_step=best_step,
        last_step=last_step,
        scores=scored.scores,
        interval=task.interval(data.dev[first].examples, scored.answers[first]),
        collapse=scored.collapse,
        stopped_early=last_step < training.steps and is_enough(values, training.patience),
        seconds=round(max(time.monotonic() - started, logged), 1),
    )
    return SeedOutcome(result, scored.answers, scored.thresholds, loaded.lines())


def build_trained(
    config: FinetuneConfig,
    albert_config: AlbertConfig,
    task: Task,
    tokenizer: Tokenizer | None = None,
    skips_padding: bool = False,
) -> TaskTrainer:
    """Builds a model and its trainer, compiled for a resolved configuration.

    To be called in a strategy's scope. All weights, which are random, and moments exist.
    `skips_padding` as in `AlbertEncoder`; without a tokenizer the model takes features.
    """
    model = task.build_model(
        albert_config,
        tokenizer,
        head_dropout=config.model.head_dropout,
        features=config.model,
        **model_settings(config.training, skips_padding),
    )
    trainer = TaskTrainer(model)
    compile_step(trainer, config)
    return trainer
