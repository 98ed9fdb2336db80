"""Pre-training: records → reader → compiled model → `model.fit` under a strategy."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow import keras

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.weight_count import model_line
from albert_keras.optimization.config import AUTO_RULE
from albert_keras.runs.run_record import read_record
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.continued_pretraining import OUTPUT_BIAS, ContinuedPretraining
from albert_keras.training.distributed.cluster import barrier, noticing_lost_workers, num_workers
from albert_keras.training.distributed.strategy import (
    build_strategy,
    choose_precision,
    describe_devices,
    is_tpu,
)
from albert_keras.training.epoch_report import report_epochs
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.evaluate import ScoreHeldOut
from albert_keras.training.loop.curves import draw_curves
from albert_keras.training.loop.fitting import create_or_resume, fit, report_loaded
from albert_keras.training.loop.log_file import read_log
from albert_keras.training.loop.step import should_skip_padding
from albert_keras.training.pretraining_step import build_step
from albert_keras.training.record_source import RecordSource, log_frequencies
from albert_keras.training.stages import (
    SAME_OBJECTIVE,
    Stages,
    check_batch_sizes,
    check_stages,
    stages_of,
    with_settings,
)
from albert_keras.training.trained_records import (
    check_held_out,
    save_training_digests,
    training_digests,
)
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import FolderLock, check_output_folder
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_folder import RecordFiles

logger = logging.getLogger(__name__)


class PretrainingResult(NamedTuple):
    """The result of a call of `pretrain`."""

    path: Path  # folder of the run
    step: int  # steps done by all calls
    resumed_from: int  # steps done by earlier calls
    seconds: float
    report: dict  # the last report in the log; {} if there is none yet


def pretrain(
    data: str | Path,
    out: str | Path,
    config: PretrainingConfig | None = None,
    eval_data: str | Path | None = None,
    allow_changes: Iterable[str] = (),
    max_steps: int | None = None,
    initial: OpenedModel | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    clock: Callable[[], float] = time.monotonic,
    teaching: Any = None,
    **flags: Any,
) -> PretrainingResult:
    """Pre-trains ALBERT on masked tokens and sentence order.

    The same call resumes an interrupted run from its newest valid checkpoint, and ends in the same
    weights as a run that was not interrupted.

    Args:
        data: str or Path. Folder of records, for all stages of `config.stages` without their own.
        out: str or Path. Folder of the run, see `run.py`.
        config: PretrainingConfig. None takes the defaults.
        eval_data: str, Path or None. Held-out records, scored every `evaluate_every` steps; the
            checkpoint with the lowest loss on them is kept. Records that are trained on, too,
            are counted and reported; if all of them are, an InputError is raised.
        allow_changes: iterable of str. Keys of `run.json` that may differ from the original run,
            see `Run.create_or_resume`.
        max_steps: int or None. Largest number of steps of this call; the next one resumes.
        initial: OpenedModel or None. Trained weights to start from, heads included, with the
            shape of the model, as `open_model` returns them. None means random weights.
        callbacks: sequence of keras Callback. Only these methods are called: `on_train_begin`,
            `on_epoch_begin` (once), `on_train_batch_end`, before the step is saved, and
            `on_train_end`.
        clock: function without arguments that returns seconds, float, by which `time_budget` is
            measured. Callbacks may stop it, so that the time they take does not count.
        teaching: Teaching or None. The teacher of a distillation, see `distillation/teaching.py`,
            which has the strategy, builds the step and the source of the records, and loads the
            first weights.
        **flags: Single settings by the keywords of `options_of(PretrainingConfig)`: `size`,
            `steps`, `batch_size`, `lr`, `seed`, `strategy`, `precision`, `masks`, ...

    Raises:
        InputError: If data, settings and model do not fit together, a record is damaged, or `out`
            contains other files or is being trained by another process.
        TrainingStopped: After SIGTERM or Ctrl-C, once the state is saved.
        TrainingDiverged: After ten consecutive updates that had to be skipped, once the state
            is saved.
        WorkerLost: If another worker is gone.
    """
    started = time.monotonic()
    config = (config or PretrainingConfig()).with_flags(**flags)

    # Check that data, settings and model fit together.
    records = RecordFiles(data)
    held_out = None if eval_data is None else RecordFiles(eval_data)
    continued = None
    if initial is not None:
        positions = config.model.get("max_position_embeddings")
        first = config.stages[0].data if config.stages else None
        length = None if first is None else DatasetInfo.read(first).max_seq_length
        kind = config.model.get("position_embedding")
        continued = ContinuedPretraining.of(initial, records, positions, length, kind)
        config = config.replace(model=continued.model_settings(config))
    config = _as_started(config, Path(out) / "run.json")
    albert_config = config.albert_config(records.info.vocab_size)
    stages = stages_of(config, records, albert_config)
    any_objective = config.training.sentence_order_weight == 0
    _check_records(records, held_out, albert_config, any_objective)
    check_stages(stages, config)
    for stage in stages:
        if stage.records is not records:  # the records of the run have been checked
            _check_shape(stage.records, albert_config)
    _check_growth(initial if teaching is None else teaching.warm_source, stages, albert_config)
    strategy = build_strategy(config.training.strategy) if teaching is None else teaching.strategy

    # The first worker takes the lock when it writes to the folder.
    lock = FolderLock(Path(out))
    with noticing_lost_workers(num_workers(strategy) > 1), lock:
        check_batch_sizes(stages, strategy)
        is_new = not (Path(out) / "run.json").is_file()
        # Several workers check later, when they agree on whether there is a run.
        if num_workers(strategy) == 1 and is_new:
            check_output_folder(out)
        if num_workers(strategy) == 1 and not is_new:
            lock.take()  # now, before the records are read
        origin = initial if teaching is None else teaching.weights
        trained = training_digests([stage.records for stage in stages], out, origin)
        overlap = None if held_out is None else check_held_out(held_out, trained, is_new)
        config = _resolve(config, strategy, records, albert_config)
        training = config.training
        stages = with_settings(stages, config)
        start = continued if teaching is None else teaching
        kept = 0 if start is None else start.trained_positions
        staged = Stages(stages, config, albert_config, kept) if config.stages else None
        source = (RecordSource if teaching is None else teaching.source)(
            records,
            training,
            start and start.describe(),
            stages=[stage.records for stage in stages] if config.stages else (),
        )
        skips_padding = should_skip_padding(strategy, training, records.info.statistics)
        with strategy.scope():
            # Build.
            build = build_step if teaching is None else teaching.build_step
            training_step = build(config, albert_config, skips_padding)
            # Load or resume. Loading comes first: weights that do not fit must leave no folder.
            loaded = None if start is None else start.load(training_step.model)
            context = create_or_resume(
                strategy, out, config, albert_config, source, training_step, allow_changes, lock
            )
            _check_depth(context, staged, albert_config)
            if context.is_chief:
                save_training_digests(context.run.path, trained)
            if context.first_step == 0:
                if start is not None and loaded is not None:
                    report_loaded(context, start.lines(loaded))
                has_bias = loaded is not None and OUTPUT_BIAS in loaded.loaded
                if training.initial_output_bias == "frequencies" and not has_bias:
                    head = training_step.model.masked_lm_head
                    head.output_bias.assign(log_frequencies(stages[0].records))
            scores = None
            if held_out is not None and overlap is not None:
                scores = ScoreHeldOut(context, held_out, training.evaluate_every, overlap)
        logger.info(
            "model %s: %s; %s on %s, %d records of %d tokens",
            config.size,
            model_line(albert_config),
            training.precision,
            describe_devices(strategy),
            len(records),
            records.info.max_seq_length,
        )
        if context.first_step == 0 and training.time_budget is None:
            report_epochs(training, stages, staged)

        # Train.
        try:
            last_step = fit(
                context, scores, max_steps, stages=staged, callbacks=callbacks, clock=clock
            )
        except (TrainingStopped, TrainingDiverged):
            _draw(context)
            raise
        if last_step > context.first_step:
            _draw(context)
        barrier(strategy)  # the first worker may still be writing

    # Report.
    reports = read_log(context.run.path)
    return PretrainingResult(
        path=context.run.path,
        step=last_step,
        resumed_from=context.first_step,
        seconds=time.monotonic() - started,
        report=reports[-1] if reports else {},
    )


def _check_growth(initial, stages, albert_config):
    """Raises InputError if growing would replace trained weights that were loaded."""
    depths = {stage.num_hidden_layers for stage in stages}
    if initial is None or albert_config.sharing == "all" or len(depths) == 1:
        return
    raise InputError(
        "`stages` must all have the depth of the model if it starts from existing weights and its "
        "layers do not share all weights: growing would replace the weights of the upper layers. "
        f"Received: {', '.join(map(str, sorted(depths)))} layers, and the weights of `{initial}`."
    )


def _check_depth(context, staged, albert_config):
    """Raises InputError if a run whose model has not grown yet is resumed without its stages."""
    depth, full = context.training_step.num_hidden_layers, albert_config.num_hidden_layers
    if staged is None and depth != full:
        raise InputError(
            f"`stages` must be given to resume `{context.run.path}`: its model has {depth} of "
            f"{full} layers at step {context.first_step:,}. Received: no stages."
        )


def _as_started(config, record_file):
    """Returns the configuration with the meaning that names had when an existing run was started.

    In this version, "auto" may mean another optimizer, and a named size may have another shape.
    """
    if not record_file.is_file():
        return config
    record = read_record(record_file)
    started = record["config"]
    optimizer, was = config.optimizer, started["optimizer"]
    if optimizer.name in ("auto", was["name"]):
        computed = {"name", "beta_2"} - optimizer.model_fields_set
        computed |= {name for name in ("name", "lr") if getattr(optimizer, name) == "auto"}
        changes = {name: was[name] for name in computed if name in was}
        config = config.replace(optimizer=optimizer.replace(**changes))
    if started["model"].get("size") != config.size:
        return config
    shape = {key: value for key, value in record["albert_config"].items() if key != "vocab_size"}
    return config.replace(model=shape | config.model)


def _resolve(config, strategy, records, albert_config):
    """Returns the configuration with all choices made, and warns of an unusual learning rate."""
    has_labels, on_tpu = records.info.objective != "none", is_tpu(strategy)
    resolved = config.resolved(choose_precision(strategy), has_labels, on_tpu)
    optimizer = resolved.optimizer
    why = f": {AUTO_RULE}" if config.optimizer.name == "auto" else ""
    logger.info("optimizer %s, peak rate %.3g%s", optimizer.name, optimizer.lr, why)
    if config.optimizer.lr != "auto":
        advice = optimizer.lr_advice(config.training.batch_size, albert_config.hidden_size)
        if advice:
            logger.warning("%s", advice)
    return resolved


def _draw(context):
    if context.is_chief:
        draw_curves(context.run.path)


def _check_shape(records, albert_config):
    """Raises InputError if a model cannot read records."""
    info = records.info
    if info.max_seq_length > albert_config.max_position_embeddings:
        raise InputError(
            "`max_seq_length` of the records must not exceed `max_position_embeddings`. "
            f"Received: {info.max_seq_length} (dataset_info.json) and "
            f"{albert_config.max_position_embeddings}. Rebuild the data, or enlarge the model with "
            f"--set model.max_position_embeddings={info.max_seq_length}.",
            Mistake.TOO_LONG,
        )
    if info.vocab_size != albert_config.vocab_size:
        raise InputError(
            "`model.vocab_size` must be the vocabulary size of the records' tokenizer. "
            f"Received: {albert_config.vocab_size} and {info.vocab_size} (dataset_info.json)."
        )


def _check_records(records, held_out, albert_config, any_objective):
    """Raises InputError if records, held-out records and model do not fit together."""
    for each in (records, held_out) if held_out is not None else (records,):
        _check_shape(each, albert_config)
    if held_out is None:
        return
    ours, theirs = records.info, held_out.info
    if None not in (ours.tokenizer_digest, theirs.tokenizer_digest):
        if ours.tokenizer_digest != theirs.tokenizer_digest:
            raise InputError(
                f"`{held_out.folder}` must be built with the tokenizer of `{records.folder}`. "
                f"Build the records with --tokenizer {records.folder}/tokenizer.",
                Mistake.OTHER_TOKENIZER,
            )
    if ours.objective != theirs.objective and not any_objective:
        raise InputError(
            f"`{held_out.folder}` must have the objective of `{records.folder}`. "
            f"Received: {theirs.objective} and {ours.objective}. {SAME_OBJECTIVE}"
        )
