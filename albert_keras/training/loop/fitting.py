"""One call of `fit`: its callbacks, and how it ends."""

import functools
import logging
import time

import tensorflow as tf

from albert_keras.training.cost.peak import measure_peak
from albert_keras.training.distributed.cluster import any_of, broadcast
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.loop.reports import Report
from albert_keras.training.loop.resume import RunContext, checkpoint_variables
from albert_keras.training.loop.saving import SaveCheckpoints, StopWhenDiverged
from albert_keras.training.loop.time_budget import FollowBudget, TimeBudget
from data_pipeline.durations import parse_duration

logger = logging.getLogger(__name__)

#: Number of steps given to Keras if the clock ends the run.
_ENDLESS = 10**9


def fit(context: RunContext, scores=None, max_steps: int | None = None) -> int:
    """Trains until the last step of a run, a signal, or the end of its time.

    Args:
        scores: keras Callback or None. Scores the model regularly: its `score` (lower is better) at
            its `step` chooses the best checkpoint. If it has an attribute `saving`, this is set.
        max_steps: Largest number of steps to make now; None if it is not limited.

    Returns:
        Steps done by all calls.

    Raises:
        TrainingStopped, TrainingDiverged, WorkerLost, InputError: See `pretrain`.
    """
    strategy, run, training = context.strategy, context.run, context.training
    source, training_step, writes = context.source, context.training_step, context.is_chief
    first_step = context.first_step
    budget = _follow_budget(context)
    last_step = _last_step(context, max_steps, budget)
    if first_step >= last_step:
        logger.info("`%s` is complete, there is nothing left to train", run.path)
        return first_step
    report = Report(
        run.path,
        training.report_every,
        first_step,
        training.steps,
        training_step.optimizer.learning_rate,
        training.batch_size * source.max_seq_length,
        flops_per_step=source.flops(training_step.model),
        peak_flops=_peak_flops(strategy, training) if writes else None,
        waited=lambda: training_step.waited,
        writes=writes,
    )

    def save(step):
        if not writes:  # all workers have the same values
            return
        state = {} if budget is None else {"budget": budget.state()}
        variables = checkpoint_variables(training_step)
        run.checkpoints.save(step, variables, state, _score(scores, report, step))

    saving = SaveCheckpoints(
        save,
        training.checkpoint_every,
        first_step,
        last_step,
        training.time_limit_seconds,
        agree=functools.partial(any_of, strategy),
    )
    skipped_before = int(training_step.guard.consecutive_skips.numpy())
    diverged = StopWhenDiverged(
        run.path, saving, first_step, source.numbers, skipped_before, writes
    )
    if hasattr(scores, "saving"):
        scores.saving = saving
    callbacks = [report, *([scores] if scores else []), diverged, saving]
    if budget is not None:
        budget.followers = tuple(each for each in callbacks if hasattr(each, "last_step"))
        callbacks.append(budget)
    planned_steps = _ENDLESS if budget else last_step - first_step
    with saving:
        try:
            training_step.fit(
                source.batches(strategy, first_step),
                epochs=1,
                steps_per_epoch=min(max_steps or _ENDLESS, planned_steps),
                callbacks=callbacks,
                verbose=0,
            )
            saving.save_now()  # if `max_steps` ended it earlier than planned
        except tf.errors.OpError as error:
            if source.failure is not None:
                raise source.failure from error
            raise
    if diverged.numbers is not None:
        skipped = int(training_step.guard.consecutive_skips.numpy())
        raise TrainingDiverged(run.path, saving.saved, skipped, diverged.numbers)
    if any_of(strategy, saving.stopped_by is not None):
        raise TrainingStopped(run.path, saving.saved)
    if saving.step < saving.last_step:
        logger.info("time limit reached at step %d of %d", saving.step, saving.last_step)
    return saving.step


def _follow_budget(context):
    """Returns the FollowBudget of a run with a time budget, or None."""
    training = context.training
    if training.time_budget is None:
        return None
    budget = FollowBudget(
        TimeBudget(parse_duration(training.time_budget)),
        context.training_step.optimizer.learning_rate,
        every=training.report_every,
        first_step=context.first_step,
        # All workers use the clock of the first one.
        clock=lambda: broadcast(context.strategy, int(time.monotonic() * 1e6)) / 1e6,
    )
    if "budget" in context.state:
        budget.restore(context.state["budget"])
    return budget


def _last_step(context, max_steps, budget):
    """Returns the step that ends this call, as far as is known now."""
    first_step, last_step = context.first_step, context.training.steps
    if budget is not None:
        last_step = first_step if first_step and budget.is_over else budget.last_step
    return last_step if max_steps is None else min(last_step, first_step + max_steps)


def _score(scores, report, step):
    """Returns the score by which the best checkpoint is chosen, or None if there is none."""
    if scores is not None:
        return scores.score if scores.step == step else None
    return report.last_line.get("loss") if report.last_line else None


def _peak_flops(strategy, training):
    """Returns the peak of all replicas together, in operations per second, or None."""
    replicas = strategy.num_replicas_in_sync
    if training.peak_tflops is not None:
        return training.peak_tflops * 1e12 * replicas
    if not tf.config.list_logical_devices("GPU"):  # the logical devices of a CPU share its peak
        replicas = 1
    peak = measure_peak(training.precision)
    return peak and peak * replicas
