"""A run in this process: created or resumed, with the same result on all workers, and trained."""

import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from albert_keras.models.objective_model import ObjectiveModel
from albert_keras.report import percent
from albert_keras.runs.checkpoints import FINISHED_AT
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import training_variables, weight_names
from albert_keras.training.cluster import any_of, broadcast, is_chief
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.peak import measure_peak
from albert_keras.training.reports import Report
from albert_keras.training.run_callbacks import Progress, RunCallbacks
from albert_keras.training.saving import SaveCheckpoints, StopWhenDiverged
from albert_keras.training.stage_plan import StagePlan
from albert_keras.training.time_budget import FollowBudget
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.progress import doing, parse_duration

logger = logging.getLogger(__name__)

#: The report of what was loaded into the first weights, beside `run.json`.
LOADED = "loaded.json"
#: More steps than any run has, for Keras if the clock ends the run, and without `max_steps`.
_ENDLESS = 10**9


@dataclass(frozen=True)
class RunContext:
    """A run that is trained by this process."""

    strategy: tf.distribute.Strategy
    run: Run
    training: Any
    source: Any  # the training data
    training_step: ObjectiveModel  # in the state after `first_step`
    progress: Progress
    state: dict[str, Any]  # state saved beside the variables of `first_step`

    @property
    def first_step(self):
        """int. Steps done by earlier calls."""
        return self.progress.first_step

    @property
    def is_chief(self):
        """bool. Whether this process is the worker that writes the run."""
        return is_chief(self.strategy)


def create_or_resume(
    strategy, out, config, albert_config, source, training_step, allow_changes=(), lock=None
) -> RunContext:
    """Creates the folder of a run, or opens it and restores its newest valid checkpoint.

    The first worker writes the folder, an existing one only after the training step has received
    the state of the checkpoint. `Run.prepare` explains the arguments. Call it in the scope of the
    strategy.

    Raises:
        InputError: As `Run.prepare`; or if all checkpoints are damaged, or the newest does
            not fit.
    """

    training_step.check_compiled_part()

    def misfits(run):
        step = run.checkpoints.newest_valid()
        if step is None:
            return []
        if FINISHED_AT in run.checkpoints.state(step):
            return ["it is finished, without an optimizer state; start from its weights"]
        return run.checkpoints.misfits(step, checkpoint_variables(training_step))

    def prepare():
        run = Run.prepare(out, config, albert_config, source, allow_changes, lock, misfits)
        if not run.checkpoints.steps():
            run.write()  # the other workers open it
        return run

    run = on_first_worker(strategy, out, prepare)
    run = Run.open(out) if run is None else run
    newest = run.checkpoints.newest_valid() if is_chief(strategy) else None
    first_step, state = broadcast(strategy, newest or 0), {}
    if first_step:
        is_finished = FINISHED_AT in run.checkpoints.state(first_step)
        variables = (weight_names if is_finished else checkpoint_variables)(training_step)
        state = run.checkpoints.load(first_step, variables)
        first_step = state.get(FINISHED_AT, first_step)
        training_step.optimizer.iterations.assign(first_step)
        training_step.keep_means()
        changes = f"; changed: {', '.join(run.overridden)}" if run.overridden else ""
        logger.info("resuming `%s` at step %d%s", run.path, first_step, changes)
    run.write()
    progress = Progress(first_step, config.training.steps)
    return RunContext(strategy, run, config.training, source, training_step, progress, state)


def on_first_worker(strategy, out, function: Callable[[], Any]) -> Any:
    """Calls a function on the first worker and returns its result there, None on the others.

    If it fails, the others raise InputError.
    """
    if not is_chief(strategy):
        if not broadcast(strategy, 0):
            raise InputError(f"Worker 0 could not start the run `{out}`. See its error message.")
        return None
    try:
        result = function()
    except BaseException:
        broadcast(strategy, 0)  # or the others would wait forever
        raise
    broadcast(strategy, 1)
    return result


def compilation(context: RunContext) -> str:
    """Returns what XLA compiles in the steps of a run, for its first line."""
    with context.strategy.scope():
        part = context.training_step.compiled_part
    return {"none": "not compiled", "kernels": "compiled kernels"}.get(part, "compiled step")


def report_loaded(context: RunContext, lines: list[str]):
    """Logs what was loaded into the first weights and saves it in the run."""
    for line in lines:
        logger.info("%s", line)
    if context.is_chief:
        write_json(context.run.path / LOADED, lines)


def checkpoint_variables(training_step: ObjectiveModel) -> dict[str, tf.Variable]:
    """Returns everything that a checkpoint contains, by name."""
    variables = training_variables(training_step, training_step.optimizer)
    return variables | training_step.state


def fit(
    context: RunContext,
    scores=None,
    max_steps: int | None = None,
    stages=None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Trains until the last step of a run, a signal, or the end of its time.

    Each stage is a `fit` of Keras; model, optimizer, schedule, means and callbacks are the same in
    all of them.

    Args:
        scores: keras Callback or None. Scores the model regularly: its `score` (lower is better) at
            its `step` chooses the best checkpoint, and `scored_on` names its data, None if these
            never change in a run.
        max_steps: Largest number of steps to make now; None if it is not limited.
        stages: Stages or None. The stages of the run; None if it has only one.
        callbacks: More callbacks, see `RunCallbacks`. If a callback has a method
            `begin_stage(positions_per_step, flops_per_step)`, it is called at the beginning of each
            stage with the trained positions of a step, B · S, padding included, and its useful
            operations.
        clock: Seconds by which a time budget is measured; callbacks may stop it.

    Returns:
        Steps done by all calls.

    Raises:
        TrainingStopped, TrainingDiverged, WorkerLost, InputError: See `pretrain`.
    """
    strategy, run, training = context.strategy, context.run, context.training
    model, writes, progress = context.training_step, context.is_chief, context.progress
    first_step = progress.first_step
    limit = _ENDLESS if max_steps is None else first_step + max_steps
    plan, source = StagePlan.of_one(training.steps), context.source
    if stages is not None:
        stages.resume(context)
        plan, source = stages.plan, stages
    budget = _follow_budget(context, plan, clock)
    last_step = min(_last_step(context, budget), limit)
    if first_step >= last_step:
        logger.info("`%s` is complete, there is nothing left to train", run.path)
        return first_step

    # === Callbacks: report, score, those of the user, save ===
    report = Report(
        run.path,
        training.report_every,
        progress,
        model.optimizer.schedule,
        peak_flops=_peak_flops(strategy, training) if writes else None,
        waited=lambda: model.waited,
        writes=writes,
        plan=plan,
        budget=budget,
    )

    def save(step):
        if not writes:  # all workers have the same values
            return
        state = {} if budget is None else {"budget": budget.state()}
        if stages is not None:
            state["stages"] = stages.state()
        is_in_last_stage = plan.number_at(step - 1) == len(plan) - 1
        score = _score(scores, progress, is_in_last_stage)
        run.checkpoints.save(step, checkpoint_variables(model), state, *score)

    saving = SaveCheckpoints(
        save, training.checkpoint_every, progress, agree=functools.partial(any_of, strategy)
    )
    skipped_before = int(model.guard.consecutive_skips.numpy())
    diverged = StopWhenDiverged(run.path, progress, source.numbers, skipped_before, writes)
    first: list = [report] if scores is None else [report, scores]
    last: list = [diverged, saving] if budget is None else [diverged, saving, budget]
    every = getattr(training, "evaluate_every", None) or training.steps
    run_callbacks = RunCallbacks(progress, first, callbacks, last, every)

    # === Training ===
    model.has_full_logs = True
    with saving, doing(lambda: _place(progress)):
        try:
            for number in range(plan.number_at(first_step), len(plan)):
                if plan.ends[number] <= progress.step:  # changed settings may leave no step
                    continue
                part = context.source
                if stages is not None:
                    part = stages.begin(number, context, progress.step)
                positions = part.positions_per_step
                run_callbacks.begin_stage(positions, part.flops(model))
                end = min(_ENDLESS if budget else plan.ends[number], limit)
                model.fit(
                    part.batches(strategy, progress.step),
                    epochs=1,
                    steps_per_epoch=end - progress.step,
                    callbacks=[run_callbacks],
                    verbose=0,
                )
                if saving.stopping or progress.step < plan.ends[number] or progress.step >= limit:
                    break
            run_callbacks.end()
            saving.save_now()  # if `max_steps` ended it earlier than planned
        except tf.errors.OpError as error:
            if source.failure is not None:
                raise source.failure from error
            if isinstance(error, tf.errors.ResourceExhaustedError):
                raise _out_of_memory(strategy, training) from error
            raise
    if diverged.numbers is not None:
        skipped = int(model.guard.consecutive_skips.numpy())
        raise TrainingDiverged(run.path, saving.saved, skipped, diverged.numbers)
    if any_of(strategy, saving.stopped_by is not None):
        raise TrainingStopped(run.path, saving.saved, saving.stopped_by)
    last_step = min(progress.last_step, limit)
    if progress.step < last_step:
        logger.info("the run ended at step %d of %d", progress.step, last_step)
    return progress.step


def _place(progress):
    """Says which step is being done; the first of a process builds the graph."""
    step, last = progress.step, progress.last_step
    return f"in step {step + 1:,} of {last:,} ({percent(step / last)} done)"


def _out_of_memory(strategy, training):
    replicas, parts = strategy.num_replicas_in_sync, training.accumulation_steps
    rows = training.batch_size // (replicas * parts)
    return InputError(
        f"The memory of the device is too small for {rows} sequences at once. Raise "
        f"`training.accumulation_steps`, which divides the batch into parts, or set "
        "`training.recompute`. Received: a batch of "
        f"{training.batch_size} in {replicas * parts} part(s)."
    )


def _follow_budget(context, plan, clock):
    training = context.training
    if training.time_budget is None:
        return None
    budget = FollowBudget(
        parse_duration(training.time_budget),
        context.training_step.optimizer.schedule,
        context.progress,
        # All workers use the clock of the first one.
        clock=lambda: broadcast(context.strategy, int(clock() * 1e6)) / 1e6,
        plan=plan,
    )
    if "budget" in context.state:
        budget.restore(context.state["budget"])
    return budget


def _last_step(context, budget):
    """Returns the step that ends the run, as far as is known now."""
    if budget is None:
        return context.training.steps
    first_step = context.first_step
    return first_step if first_step and budget.is_over else budget.last_step


def _score(scores, progress, is_in_last_stage):
    """Returns the score by which the best checkpoint is chosen, or None, and what it is of."""
    if scores is not None:
        return scores.score if scores.step == progress.step else None, scores.scored_on
    if not is_in_last_stage:  # other records, lengths or masks have other losses
        return None, None
    return progress.line.get("loss"), "training"


def _peak_flops(strategy, training):
    """Returns the peak of all replicas together, in operations per second."""
    replicas = strategy.num_replicas_in_sync
    if training.peak_tflops is not None:
        return training.peak_tflops * 1e12 * replicas
    if not tf.config.list_logical_devices("GPU"):  # the logical devices of a CPU share its peak
        replicas = 1
    peak = measure_peak(training.precision)
    return peak and peak * replicas
