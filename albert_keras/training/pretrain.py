"""Pre-training: records → compiled model → `fit` under a strategy, in the folder of a run."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.optimization.config import AUTO_RULE
from albert_keras.report import count_of, number_text
from albert_keras.runs.log_file import read_log
from albert_keras.runs.trained_data import RECORDS, check_overlap, save_digests
from albert_keras.shape import model_line
from albert_keras.training.build import should_skip_padding
from albert_keras.training.cluster import barrier, noticing_lost_workers, num_workers
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.evaluate import ScoreHeldOut
from albert_keras.training.fitting import compilation, create_or_resume, fit, report_loaded
from albert_keras.training.record_source import RecordSource, log_frequencies
from albert_keras.training.run_callbacks import check_callbacks
from albert_keras.training.stages import Stages, check_batch_sizes, stages_of
from albert_keras.training.start import OUTPUT_BIAS, ContinuedPretraining, Start
from albert_keras.training.strategy import (
    build_strategy,
    choose_precision,
    describe_devices,
    is_tpu,
)
from albert_keras.training.trained_records import digests_of, training_digests
from data_pipeline.files import check_output_folder
from data_pipeline.folder_lock import FolderLock
from data_pipeline.progress import lines_shown
from data_pipeline.records.record_files import RecordFiles

logger = logging.getLogger(__name__)


class PretrainingResult(NamedTuple):
    """The result of a call of `pretrain`."""

    path: Path  # folder of the run
    step: int  # steps done by all calls
    resumed_from: int  # steps done by earlier calls
    seconds: float
    report: dict  # the last report in the log; {} if there is none yet


def pretrain(
    data: str | Path | RecordFiles,
    out: str | Path,
    config: PretrainingConfig | None = None,
    eval_data: str | Path | RecordFiles | None = None,
    max_steps: int | None = None,
    initial: OpenedModel | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    clock: Callable[[], float] = time.monotonic,
    verbose: int = 0,
    start: Start | None = None,
    **flags: Any,
) -> PretrainingResult:
    """Pre-trains ALBERT on masked tokens and sentence order.

    It compiles AlbertForPretraining and calls `fit` with the callbacks of a run. The same call
    resumes an interrupted run from its newest valid checkpoint, and ends in the same weights as a
    run that was not interrupted.

    Args:
        data: RecordFiles or their folder, for all stages of `config.stages` without their own.
        out: str or Path. Folder of the run, see `run.py`.
        config: PretrainingConfig. None takes the defaults.
        eval_data: RecordFiles, their folder, or None. Held-out records, scored every
            `evaluate_every` steps; the checkpoint with the lowest loss on them is kept. Records
            that are trained on, too, are counted and reported; if all of them are, an InputError is
            raised.
        max_steps: int or None. Largest number of steps of this call; the next one resumes.
        initial: OpenedModel or None. Trained weights to start from, heads included, with the
            shape of the model, as `open_weights` returns them. None means random weights.
        callbacks: sequence of keras Callback. They see an epoch for each `evaluate_every` steps,
            with the scores on `eval_data` as `val_loss` and so on, see `RunCallbacks`.
        clock: function without arguments that returns seconds, float, by which `time_budget` is
            measured. Callbacks may stop it, so that the time they take does not count.
        verbose: int. 1 prints the progress, which otherwise goes to the log of the module.
        start: Start or None. How the run begins, if not as `initial` says: for a distillation,
            see `distillation/teaching.py`.
        **flags: Single settings by the keywords of `options_of(PretrainingConfig)`: `size`,
            `steps`, `batch_size`, `lr`, `seed`, `strategy`, `precision`, `masks`, ...

    Raises:
        InputError: If data, settings and model do not fit together, a record is damaged, or `out`
            contains other files or is being trained by another process.
        TrainingStopped: After SIGTERM or Ctrl-C, once the state is saved.
        TrainingDiverged: After ten consecutive updates that had to be skipped, once the state
            is saved.
        WorkerLost: If another worker is gone.

    Example:
        pretrain("records/", "runs/first", size="albert-tiny", steps=2000, verbose=1)
    """
    started = time.monotonic()
    check_callbacks(callbacks)
    config = (config or PretrainingConfig()).with_flags(**flags)
    records = RecordFiles.of(data)
    held_out = None if eval_data is None else RecordFiles.of(eval_data)
    if initial is not None:
        start = ContinuedPretraining.of(initial, records, config)
    start = start or Start()
    config = start.configured(config)
    albert_config = config.albert_config(records.info.vocab_size)
    stages = stages_of(config, records, albert_config, held_out)
    strategy = build_strategy(config.training.strategy, is_training=True)
    lock = FolderLock(Path(out))  # the first worker takes it when it writes to the folder
    with lines_shown(verbose), noticing_lost_workers(num_workers(strategy) > 1), lock:
        _check_folder(out, strategy, lock)
        check_batch_sizes(stages, strategy)
        trained = training_digests([stage.records for stage in stages], out, start.weights)
        overlap = None
        if held_out is not None:
            name = str(held_out.folder)
            overlap = check_overlap(trained, digests_of(held_out), RECORDS, name)
        config = _resolve(config, strategy, records)
        staged = None
        if config.stages:
            staged = Stages(stages, config, start.trained_positions)
        with strategy.scope():
            context = _begin(start, strategy, out, config, albert_config, records, stages, lock)
            scores = None
            if held_out is not None and overlap is not None:
                every = config.training.evaluate_every
                scores = ScoreHeldOut(context, held_out, every, overlap)
        if context.is_chief:
            save_digests(context.run.path, RECORDS, trained)
        _log_begin(context, config, albert_config, records, stages, staged)
        last_step = fit(context, scores, max_steps, staged, callbacks, clock)
        if scores is not None and context.is_chief:
            scores.judge(records)
        barrier(strategy)  # the first worker may still be writing
    reports = read_log(context.run.path)
    return PretrainingResult(
        path=context.run.path,
        step=last_step,
        resumed_from=context.first_step,
        seconds=time.monotonic() - started,
        report=reports[-1] if reports else {},
    )


def _begin(start, strategy, out, config, albert_config, records, stages, lock):
    """Builds the model, and creates the run with its first weights or restores its newest ones."""
    training = config.training
    source = RecordSource(
        records,
        training,
        start.describe(),
        stages=[stage.records for stage in stages] if config.stages else (),
    )
    skips_padding = should_skip_padding(strategy, training, records.info.statistics)
    model = start.build(config, albert_config, skips_padding)
    # Loading comes first: weights that do not fit must leave no folder.
    loaded = start.load(model)
    context = create_or_resume(strategy, out, config, albert_config, source, model, lock)
    if context.first_step == 0:
        if loaded is not None:
            report_loaded(context, start.lines(loaded))
        has_bias = loaded is not None and OUTPUT_BIAS in loaded.loaded
        if training.initial_output_bias == "frequencies" and not has_bias:
            model.masked_lm_head.output_bias.assign(log_frequencies(stages[0].records))
    return context


def _log_begin(context, config, albert_config, records, stages, staged):
    logger.info(
        "model %s: %s; %s, %s on %s, %d records of %d tokens",
        config.size,
        model_line(albert_config),
        config.training.precision,
        compilation(context),
        describe_devices(context.strategy),
        len(records),
        records.info.max_seq_length,
    )
    if context.first_step == 0 and config.training.time_budget is None:
        _log_epochs(config.training, stages, staged)


def _log_epochs(training, stages, staged):
    """Logs how often each stage passes over its records."""
    for number, stage in enumerate(stages):
        steps, name = training.steps, ""
        if staged is not None:
            steps = staged.plan.ends[number] - staged.plan.start_of(number)
            name = f"stage {number + 1} of {len(stages)}: "
        batch_size = stage.training.batch_size
        epochs = number_text(steps * batch_size / len(stage.records), 2)
        shown = count_of(steps, "step")
        logger.info("%s%s of %d records: %s epochs", name, shown, batch_size, epochs)


def _check_folder(out, strategy, lock):
    """Raises InputError if the folder has other files or is in use."""
    if num_workers(strategy) > 1:  # they check when they agree on whether the run is new
        return
    if (Path(out) / "run.json").is_file():
        lock.take()  # now, before the records are read
    else:
        check_output_folder(out)


def _resolve(config, strategy, records):
    """Returns the configuration with all choices made."""
    has_labels, on_tpu = records.info.objective != "none", is_tpu(strategy)
    resolved = config.resolved(choose_precision(strategy), has_labels, on_tpu)
    optimizer = resolved.optimizer
    why = f": {AUTO_RULE}" if config.optimizer.name == "auto" else ""
    logger.info("optimizer %s, peak rate %.3g%s", optimizer.name, optimizer.lr, why)
    return resolved
