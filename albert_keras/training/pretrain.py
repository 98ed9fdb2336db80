"""Records → reader → compiled model → `model.fit` under a strategy."""

import logging
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.optimization.build import build_optimizer
from albert_keras.training.checkpoints import SaveCheckpoints
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.curves import draw_curves
from albert_keras.training.errors import TrainingStopped
from albert_keras.training.output_bias import log_frequencies
from albert_keras.training.reports import Report, read_log
from albert_keras.training.run import Run
from albert_keras.training.step import PretrainingStep
from albert_keras.training.strategy import build_strategy, choose_precision
from data_pipeline.errors import InputError
from data_pipeline.reader import draws_masks, training_dataset
from data_pipeline.record_folder import RecordFiles

logger = logging.getLogger(__name__)


class PretrainingResult(NamedTuple):
    """What a call of `pretrain` did.

    Attributes:
        path: Path. Folder of the run.
        step: int. Steps the run has now.
        resumed_from: int. Steps it had before.
        seconds: float.
        report: dict. The last line of the log.
    """

    path: Path
    step: int
    resumed_from: int
    seconds: float
    report: dict


def pretrain(data, out, config=None, **flags):
    """Pre-trains ALBERT on masked pieces and sentence order.

    The same call goes on with a run that was interrupted, from its newest checkpoint.

    Args:
        data: str or Path. Folder of records.
        out: str or Path. Folder of the run, see `run.py`.
        config: PretrainingConfig. None takes the defaults.
        **flags: Single settings in the words of the command line: `size`, `steps`, `batch_size`,
            `lr`, `seed`, `strategy`, `precision`, `checkpoint_every`, `masks`.

    Returns:
        PretrainingResult.

    Raises:
        InputError: If data, settings and model do not go together, or `out` holds something else.
        TrainingStopped: After SIGTERM or Ctrl-C, once the state is saved.
    """
    started = time.monotonic()
    config = (config or PretrainingConfig()).with_flags(**flags)
    training = config.training
    records = RecordFiles(data)
    albert_config = config.albert_config(records.info.vocab_size)
    _check_fit(records.info, albert_config)
    draws_masks(records, training.masks)  # says so if it cannot
    strategy = build_strategy(training.strategy)
    if training.batch_size % strategy.num_replicas_in_sync:
        raise InputError(
            "`training.batch_size` should be a multiple of the number of replicas. "
            f"Received: {training.batch_size} and {strategy.num_replicas_in_sync}."
        )
    config = config.resolved(choose_precision(strategy), records.info.objective != "none")
    training = config.training
    run = Run.begin(out, config, albert_config, records)
    logger.info(
        "model %s: %d layers, hidden size %d, %s on %d replica(s), %d records of %d pieces",
        config.model["size"],
        albert_config.num_hidden_layers,
        albert_config.hidden_size,
        config.training.precision,
        strategy.num_replicas_in_sync,
        len(records),
        records.info.max_seq_length,
    )
    with strategy.scope():
        step = build_step(config, albert_config)
        first_step = _resume(run, step)
        if first_step == 0 and training.initial_output_bias == "frequencies":
            step.model.masked_lm_head.output_bias.assign(log_frequencies(records))

    last_step = first_step
    if first_step < training.steps:
        last_step = _fit(step, run, config, records, first_step)
        draw_curves(run.path)
    else:
        logger.info("`%s` is complete, nothing is left to train", run.path)
    reports = read_log(run.path)
    return PretrainingResult(
        path=run.path,
        step=last_step,
        resumed_from=first_step,
        seconds=time.monotonic() - started,
        report=reports[-1] if reports else {},
    )


def build_step(config, albert_config):
    """Makes the compiled PretrainingStep of a configuration; call it in a strategy's scope."""
    training = config.training
    model = AlbertForPretraining(
        albert_config,
        sentence_head=training.sentence_order_weight > 0,
        seed=training.seed,
        dtype=training.precision,
    )
    optimizer = build_optimizer(
        config.optimizer, num_steps=training.steps, batch_size=training.batch_size
    )
    step = PretrainingStep(model, training.sentence_order_weight, config.optimizer.clip_norm)
    step.compile(optimizer=optimizer)
    # Keras makes the moments at the first update; a checkpoint to go on from needs them before.
    optimizer._create_all_weights(model.trainable_variables)
    return step


def _resume(run, step):
    done = run.checkpoints.steps()
    if not done:
        return 0
    run.checkpoints.restore(done[-1], step.model, step.optimizer)
    logger.info("going on with `%s` from step %d", run.path, done[-1])
    return done[-1]


def _fit(step, run, config, records, first_step):
    training = config.training
    positions = training.batch_size * records.info.max_seq_length
    checkpoints = SaveCheckpoints(
        run.checkpoints,
        training.checkpoint_every,
        first_step,
        training.steps,
        training.time_limit_seconds,
    )
    report = Report(
        run.path,
        training.report_every,
        first_step,
        training.steps,
        step.optimizer.learning_rate,
        positions,
    )
    dataset = training_dataset(
        records, training.batch_size, training.seed, first_step, training.masks
    )
    try:
        step.fit(
            dataset,
            epochs=1,
            steps_per_epoch=training.steps - first_step,
            callbacks=[report, checkpoints],
            verbose=0,
        )
    finally:
        checkpoints.restore_signals()
    if checkpoints.stopped_by:
        raise TrainingStopped(run.path, checkpoints.saved)
    if checkpoints.step < training.steps:
        logger.info("time is up at step %d of %d", checkpoints.step, training.steps)
    return checkpoints.step


def _check_fit(info, albert_config):
    if info.max_seq_length > albert_config.max_position_embeddings:
        raise InputError(
            "`max_seq_length` of the records should not exceed `max_position_embeddings`. "
            f"Received: {info.max_seq_length} (dataset_info.json) and "
            f"{albert_config.max_position_embeddings}. Rebuild the data or enlarge the model."
        )
    if info.vocab_size != albert_config.vocab_size:
        raise InputError(
            "`model.vocab_size` should be that of the records' tokenizer. "
            f"Received: {albert_config.vocab_size} and {info.vocab_size} (dataset_info.json)."
        )
