"""One training of a fine-tuning: from a seed to the best of its weights, and their answers."""

import json
import logging
import time
from typing import Any, NamedTuple

from albert_keras.finetuning.dev_curves import draw_dev_curves
from albert_keras.finetuning.finetuned import save_tuned
from albert_keras.finetuning.predicting import RowPredictor
from albert_keras.finetuning.results import SeedResult
from albert_keras.finetuning.score_dev import ScoreDev, is_enough, values_so_far
from albert_keras.finetuning.source import ExampleSource
from albert_keras.finetuning.step import build_step
from albert_keras.training.distributed.cluster import broadcast, is_chief
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.loop.batches import check_batch_size
from albert_keras.training.loop.fitting import fit
from albert_keras.training.loop.reports import keep_log_until, read_log
from albert_keras.training.loop.resume import LOADED, create_or_resume, report_loaded
from albert_keras.training.loop.step_settings import should_skip_padding

logger = logging.getLogger(__name__)


class SeedOutcome(NamedTuple):
    """A training that has ended.

    Attributes:
        result: SeedResult.
        answers: dict of str to list. By development split, of the best weights.
        tuned: dict. See `Task.tune`.
        loaded: list of str. What became of each weight at the beginning.
    """

    result: SeedResult
    answers: dict[str, list[Any]]
    tuned: dict[str, float]
    loaded: list[str]


def train_seed(strategy, data, origin, out, seed, allow_changes=()):
    """Trains from one seed, or goes on with it, and returns to the best weights.

    Args:
        strategy: tf.distribute.Strategy.
        data: TaskData.
        origin: InitialWeights. Of the first weights.
        out: Path. Folder of the run.
        seed: int. Decides head, order of the examples and dropout.
        allow_changes: iterable of str. See `Run.create_or_resume`.

    Returns:
        SeedOutcome.

    Raises:
        InputError, TrainingStopped, TrainingDiverged, WorkerLost: As `pretrain`.
    """
    started = time.monotonic()
    config, task = data.config.with_flags(seed=seed), data.task
    training, features = config.training, data.train.features
    check_batch_size(strategy, training)
    about = {"origin": str(origin), "origin_digest": origin.digest} | data.fingerprints
    source = ExampleSource(features, data.tokenizer, training, about)
    statistics = {
        "positions": len(features) * features.max_seq_length,
        "real_positions": int(features.lengths.sum()),
    }
    skips = should_skip_padding(strategy, training, statistics)
    with strategy.scope():
        training_step = build_step(config, data.albert_config, task, skips)
        # Loading comes first: weights that do not fit must leave no folder.
        loaded = origin.load(training_step.model)
        context = create_or_resume(
            strategy, out, config, data.albert_config, source, training_step, allow_changes
        )
        run, first_step = context.run, context.first_step
        if first_step == 0:
            report_loaded(context, loaded.lines())
        if is_chief(strategy):
            keep_log_until(run.path, first_step)  # a killed process may have cut the last line
        predictor = RowPredictor(strategy, training_step.model, task.kind, training.eval_batch_size)
        scores = ScoreDev(
            run.path,
            task,
            data.dev,
            predictor.predict,
            training.evaluate_every,
            training.patience,
            first_step,
            training.steps,
            is_chief(strategy),
        )
    logger.info(
        "seed %d: %s steps of %d, learning rate %.2g, %s",
        seed,
        f"{training.steps:,}",
        training.batch_size,
        config.optimizer.lr,
        training.precision,
    )
    values = values_so_far(run.path, task.metric, first_step)
    if broadcast(strategy, int(is_enough(values, training.patience))):
        logger.info("`%s` has ended early, nothing is left to train", run.path)
        last_step = first_step
    else:
        last_step = _fit(context, scores, task)
    _draw(strategy, run, task)
    return _best(strategy, data, run, training_step, predictor, last_step, started)


def _fit(context, scores, task):
    try:
        return fit(context, scores)
    except (TrainingStopped, TrainingDiverged):
        _draw(context.strategy, context.run, task)
        raise


def _draw(strategy, run, task):
    if is_chief(strategy):
        draw_dev_curves(run.path, task.metric)


def _best(strategy, data, run, training_step, predictor, last_step, started):
    """Loads the best weights and lets them answer."""
    task, training = data.task, data.config.training
    best_step = run.checkpoints.best() if is_chief(strategy) else None
    best_step = broadcast(strategy, best_step or 0) or last_step
    with strategy.scope():
        run.checkpoints.restore(best_step, training_step.model)
    answers, tuned, scores, interval, collapse = {}, {}, {}, None, None
    for number, (split, (examples, features)) in enumerate(data.dev.items()):
        results = [predictor.predict(features)]
        if number == 0:
            tuned = task.tune(examples, features, results)
        answers[split] = task.answers(examples, features, results, tuned)
        scores[split] = task.scores(examples, answers[split])
        if number == 0:
            interval = task.interval(examples, answers[split])
            collapse = task.collapse(answers[split])
    if is_chief(strategy):
        save_tuned(run, tuned)
    values = values_so_far(run.path, task.metric, last_step)
    # Those of earlier calls, which were interrupted, stand in the log.
    logged = sum(line["seconds"] for line in read_log(run.path))
    result = SeedResult(
        seed=run.record["config"]["training"]["seed"],
        path=run.path.name,
        best_step=best_step,
        last_step=last_step,
        scores=scores,
        interval=interval,
        collapse=collapse,
        stopped_early=last_step < training.steps and is_enough(values, training.patience),
        seconds=round(max(time.monotonic() - started, logged), 1),
    )
    return SeedOutcome(result, answers, tuned, _told(run))


def _told(run):
    """Returns what was told when the run began, perhaps in an earlier process."""
    path = run.path / LOADED
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
