"""A run in this process: created or resumed, with the same result on all workers, and trained."""

import contextlib
import functools
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from albert_keras.models.objective_model import ObjectiveModel
from albert_keras.runs.checkpoints import FINISHED_AT
from albert_keras.runs.run import MODEL, Run
from albert_keras.runs.tensors import training_variables, weight_names
from albert_keras.training.cluster import any_of, broadcast, is_chief
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.reports import Report
from albert_keras.training.run_callbacks import Progress, RunCallbacks
from albert_keras.training.saving import SaveCheckpoints, StopWhenDiverged
from albert_keras.training.time_budget import FollowBudget
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.progress import parse_duration

logger = logging.getLogger(__name__)

#: The report of what was loaded into the first weights, beside `run.json`.
LOADED = "loaded.json"
#: More steps than any run has, for Keras if the clock ends the run.
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
    strategy, out, config, albert_config, source, training_step, lock=None
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

    def prepare():
        run = Run.prepare(out, config, albert_config, source, lock)
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
        logger.info("resuming `%s` at step %d", run.path, first_step)
    run.write()
    if is_chief(strategy) and not (run.path / MODEL).is_file():
        run.save_model(training_step.stored_model())
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


class SingleStage:
    """The only stage of a run that has no `Stages`, with the same methods."""

    def __init__(self, context: RunContext):
        self._source = context.source

    @property
    def failure(self) -> Exception | None:
        """The error that occurred while the data were read."""
        return self._source.failure

    def state(self) -> dict:
        """Returns nothing: a checkpoint of such a run does not describe its stage."""
        return {}

    def resume(self, context: RunContext):
        """Does nothing."""

    def begin(self, number: int, context: RunContext, step: int) -> Any:
        """Returns the data of the run."""
        return self._source


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
    all of them. `Progress` says what ends a run.

    Args:
        scores: keras Callback or None. Scores the model regularly: its `score` (lower is better) at
            its `step` chooses the best checkpoint, and `scored_on` names its data, None if these
            never change in a run.
        max_steps: Largest number of steps to make now; None if it is not limited.
        stages: Stages or None. The stages of the run; None if it has only one.
        callbacks: More callbacks, see `RunCallbacks`. If a callback has a method
            `begin_stage(positions_per_step)`, it is called at the beginning of each stage with the
            trained positions of a step, B · S, padding included.
        clock: Seconds by which a time budget is measured; callbacks may stop it.

    Returns:
        Steps done by all calls.

    Raises:
        TrainingStopped, TrainingDiverged, WorkerLost, InputError: See `pretrain`.
    """
    run, model, progress = context.run, context.training_step, context.progress
    stages = SingleStage(context) if stages is None else stages
    stages.resume(context)
    budget = _follow_budget(context, clock)
    if max_steps is not None:
        progress.limit = progress.first_step + max_steps
    if progress.step >= progress.end:
        logger.info("`%s` is complete, there is nothing left to train", run.path)
        return progress.step

    saving = _save_checkpoints(context, scores, stages, budget)
    skipped_before = int(model.guard.consecutive_skips.numpy())
    diverged = StopWhenDiverged(progress, skipped_before)
    first: list = [_report(context)]
    last: list = [diverged, saving]
    if scores is not None:
        first.append(scores)
    if budget is not None:
        last.append(budget)
    every = getattr(context.training, "evaluate_every", None) or context.training.steps
    run_callbacks = RunCallbacks(progress, first, callbacks, last, every)
    model.has_full_logs = True
    with saving, _named_failures(context, stages):
        _fit_stages(context, stages, run_callbacks, has_budget=budget is not None)
        run_callbacks.end()
        saving.save_now()  # if `max_steps` ended it before the end of the run
    if diverged.has_diverged:
        skipped = int(model.guard.consecutive_skips.numpy())
        raise TrainingDiverged(run.path, saving.saved, skipped)
    if any_of(context.strategy, saving.stopped_by is not None):
        raise TrainingStopped(run.path, saving.saved, saving.stopped_by)
    if progress.step < progress.end:
        logger.info("the run ended at step %d of %d", progress.step, progress.end)
    return progress.step


def _fit_stages(context, stages, run_callbacks, has_budget):
    """Calls the `fit` of Keras for each stage that has steps left, until something ends the run."""
    progress, plan = context.progress, context.progress.plan
    for number in range(plan.number_at(progress.step), len(plan)):
        if plan.ends[number] <= progress.step:  # changed settings may leave no step
            continue
        part = stages.begin(number, context, progress.step)
        run_callbacks.begin_stage(part.positions_per_step)
        end = _ENDLESS if has_budget else plan.ends[number]  # the clock ends the stage
        context.training_step.fit(
            part.batches(context.strategy, progress.step),
            epochs=1,
            steps_per_epoch=min(end, progress.limit) - progress.step,
            callbacks=[run_callbacks],
            verbose=0,
        )
        if progress.is_stopping or progress.step >= progress.limit:
            return


def _report(context):
    training = context.training
    return Report(
        context.run.path,
        training.report_every,
        context.progress,
        writes=context.is_chief,
    )


def _save_checkpoints(context, scores, stages, budget):
    progress, model, plan = context.progress, context.training_step, context.progress.plan

    def save(step):
        if not context.is_chief:  # all workers have the same values
            return
        state = stages.state()
        if budget is not None:
            state["budget"] = budget.state()
        is_in_last_stage = plan.number_at(step - 1) == len(plan) - 1
        score = _score(scores, progress, is_in_last_stage)
        context.run.checkpoints.save(step, checkpoint_variables(model), state, *score)

    agree = functools.partial(any_of, context.strategy)
    return SaveCheckpoints(save, context.training.checkpoint_every, progress, agree)


@contextlib.contextmanager
def _named_failures(context, stages):
    """Raises what went wrong in place of the error in which TensorFlow wraps it."""
    try:
        yield
    except tf.errors.OpError as error:
        if stages.failure is not None:
            raise stages.failure from error
        if isinstance(error, tf.errors.ResourceExhaustedError):
            raise _out_of_memory(context.strategy, context.training) from error
        raise


def _out_of_memory(strategy, training):
    replicas, parts = strategy.num_replicas_in_sync, training.accumulation_steps
    rows = training.batch_size // (replicas * parts)
    return InputError(
        f"The memory of the device is too small for {rows} sequences at once. Raise "
        f"`training.accumulation_steps`, which divides the batch into parts, or set "
        "`training.recompute`. Received: a batch of "
        f"{training.batch_size} in {replicas * parts} part(s)."
    )


def _follow_budget(context, clock):
    if context.training.time_budget is None:
        return None
    budget = FollowBudget(
        parse_duration(context.training.time_budget),
        context.training_step.optimizer.schedule,
        context.progress,
        # All workers use the clock of the first one.
        clock=lambda: broadcast(context.strategy, int(clock() * 1e6)) / 1e6,
    )
    if "budget" in context.state:
        budget.restore(context.state["budget"])
    return budget


def _score(scores, progress, is_in_last_stage):
    """Returns the score by which the best checkpoint is chosen, or None, and what it is of."""
    if scores is not None:
        return scores.score if scores.step == progress.step else None, scores.scored_on
    if not is_in_last_stage:  # other records, lengths or masks have other losses
        return None, None
    return progress.line.get("loss"), "training"
