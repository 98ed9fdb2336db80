"""Records → reader → compiled model → `model.fit` under a strategy."""

import logging
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras.training.build import build_step, should_skip_padding
from albert_keras.training.config import SMALL_MODEL_LR, PretrainingConfig
from albert_keras.training.continued_pretraining import (
    OUTPUT_BIAS,
    ContinuedPretraining,
    report_loaded,
)
from albert_keras.training.distributed.cluster import (
    barrier,
    is_chief,
    noticing_lost_workers,
    num_workers,
)
from albert_keras.training.distributed.strategy import build_strategy, choose_precision
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.held_out import ScoreHeldOut
from albert_keras.training.loop.batches import check_batch_size
from albert_keras.training.loop.curves import draw_curves
from albert_keras.training.loop.fitting import fit
from albert_keras.training.loop.reports import read_log
from albert_keras.training.loop.resume import open_run, restore
from albert_keras.training.output_bias import log_frequencies
from albert_keras.training.record_source import RecordSource
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import uses_dynamic_masks
from data_pipeline.records.record_folder import RecordFiles

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


def pretrain(
    data,
    out,
    config=None,
    eval_data=None,
    allow_changes=(),
    max_steps=None,
    initial=None,
    **flags,
):
    """Pre-trains ALBERT on masked pieces and sentence order.

    The same call goes on with a run that was interrupted, from its newest sound checkpoint, and
    ends in the same weights as one that was not.

    Args:
        data: str or Path. Folder of records.
        out: str or Path. Folder of the run, see `run.py`.
        config: PretrainingConfig. None takes the defaults.
        eval_data: str, Path or None. Held-out records, scored each `evaluate_every` steps; the
            checkpoint with the lowest loss on them is kept.
        allow_changes: iterable of str. Keys of `run.json` that may differ from those the run was
            begun with, see `Run.begin`.
        max_steps: int or None. Steps of this call at most; the next one goes on.
        initial: InitialWeights or None. What `open_weights` found: trained weights to begin with,
            the heads too, and the shape of the model. None begins with random ones.
        **flags: Single settings by the keywords of `options_of(PretrainingConfig)`: `size`,
            `steps`, `batch_size`, `lr`, `seed`, `strategy`, `precision`, `masks`, ...

    Returns:
        PretrainingResult.

    Raises:
        InputError: If data, settings and model do not go together, or `out` holds something else.
        TrainingStopped: After SIGTERM or Ctrl-C, once the state is saved.
        TrainingDiverged: After ten updates in a row that had to be left out, likewise.
        WorkerLost: If another worker is gone.
    """
    started = time.monotonic()
    config = (config or PretrainingConfig()).with_flags(**flags)
    records = RecordFiles(data)
    held_out = None if eval_data is None else RecordFiles(eval_data)
    continued = None
    if initial is not None:
        continued = ContinuedPretraining.of(initial, records)
        config = config.replace(model=continued.model_settings(config))
    albert_config = config.albert_config(records.info.vocab_size)
    _check_fit(records.info, albert_config)
    if held_out is not None:
        _check_held_out(records, held_out)
        _check_fit(held_out.info, albert_config)
    uses_dynamic_masks(records, config.training.masks)  # says so if it cannot
    strategy = build_strategy(config.training.strategy)
    with noticing_lost_workers(num_workers(strategy) > 1):
        result = _pretrain(
            strategy,
            records,
            out,
            config,
            albert_config,
            held_out,
            allow_changes,
            max_steps,
            continued,
        )
        barrier(strategy)  # nobody leaves while the first worker still writes
    return result._replace(seconds=time.monotonic() - started)


def _pretrain(
    strategy,
    records,
    out,
    config,
    albert_config,
    held_out,
    allow_changes,
    max_steps,
    continued,
):
    check_batch_size(strategy, config.training)
    asked = config
    config = config.resolved(choose_precision(strategy), records.info.objective != "none")
    training = config.training
    skips = should_skip_padding(strategy, training, records.info.statistics)
    if "lr" in asked.optimizer.model_fields_set:
        advice = asked.optimizer.lr_advice(training.batch_size)
        if advice and config.size not in SMALL_MODEL_LR:
            logger.warning("%s", advice)
    source = RecordSource(records, training, continued and continued.describe())
    loaded = None
    if continued is not None:
        with strategy.scope():
            step = build_step(config, albert_config, skips)
            # Before there is a folder: what cannot begin leaves none behind.
            loaded = continued.load(step.model)
    run = open_run(strategy, out, config, albert_config, source, allow_changes)
    logger.info(
        "model %s: %d layers, hidden size %d, %s on %d replica(s), %d records of %d pieces",
        config.size,
        albert_config.num_hidden_layers,
        albert_config.hidden_size,
        training.precision,
        strategy.num_replicas_in_sync,
        len(records),
        records.info.max_seq_length,
    )
    with strategy.scope():
        if continued is None:
            step = build_step(config, albert_config, skips)
        first_step, state = restore(strategy, run, step)
        if first_step == 0 and loaded is not None:
            report_loaded(strategy, run, continued.lines(loaded))
        has_bias = loaded is not None and OUTPUT_BIAS in loaded.loaded
        if first_step == 0 and training.initial_output_bias == "frequencies" and not has_bias:
            step.model.masked_lm_head.output_bias.assign(log_frequencies(records))
        scores = None
        if held_out is not None:
            scores = ScoreHeldOut(
                run.path,
                held_out,
                step,
                training.evaluate_every,
                first_step,
                training.steps,
                is_chief(strategy),
            )

    try:
        last_step = fit(strategy, step, run, training, source, scores, first_step, state, max_steps)
    except (TrainingStopped, TrainingDiverged):
        _draw(strategy, run)
        raise
    if last_step > first_step:
        _draw(strategy, run)
    reports = read_log(run.path)
    return PretrainingResult(
        path=run.path,
        step=last_step,
        resumed_from=first_step,
        seconds=0.0,
        report=reports[-1] if reports else {},
    )


def _draw(strategy, run):
    if is_chief(strategy):
        draw_curves(run.path)


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


def _check_held_out(records, held_out):
    ours, theirs = records.info, held_out.info
    if None not in (ours.tokenizer_digest, theirs.tokenizer_digest):
        if ours.tokenizer_digest != theirs.tokenizer_digest:
            raise InputError(
                f"`{held_out.folder}` should be made with the tokenizer of `{records.folder}`. "
                f"Build the records with --tokenizer {records.folder}/tokenizer."
            )
    if ours.objective != theirs.objective:
        raise InputError(
            f"`{held_out.folder}` should have the objective of `{records.folder}`. "
            f"Received: {theirs.objective} and {ours.objective}."
        )
