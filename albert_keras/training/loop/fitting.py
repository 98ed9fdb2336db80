"""One call of `fit`: what watches over it, and how it ends."""

import functools
import logging
import time

import tensorflow as tf

from albert_keras.training.cost.peak import measure_peak
from albert_keras.training.distributed.cluster import any_of, is_chief, share
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.loop.divergence import StopWhenDiverged
from albert_keras.training.loop.follow_budget import FollowBudget
from albert_keras.training.loop.reports import Report
from albert_keras.training.loop.resume import checkpoint_variables
from albert_keras.training.loop.saving import SaveCheckpoints
from albert_keras.training.loop.time_budget import TimeBudget, parse_duration

logger = logging.getLogger(__name__)

#: Steps of a run that the clock ends.
_ENDLESS = 10**9


def fit(strategy, step, run, training, source, scores, first_step, state, max_steps=None):
    """Trains until the last step of a run, a signal, or the end of its time.

    Args:
        strategy: tf.distribute.Strategy.
        step: TrainingStep, restored.
        run: Run.
        training: LoopConfig, resolved.
        source: RecordSource or another with its methods. What is learnt from.
        scores: keras Callback or None. Scores the model now and then: `score` (lower is better) at
            `step` chooses the best checkpoint. Its `saving`, if it has one, is set.
        first_step: int. Steps done before.
        state: dict. What was saved beside the variables.
        max_steps: int or None. Steps to do now at most.

    Returns:
        int. Steps the run has now.

    Raises:
        TrainingStopped, TrainingDiverged, WorkerLost, InputError: See `pretrain`.
    """
    writes = is_chief(strategy)
    budget = _follow_budget(strategy, step, training, first_step, state)
    last_step = _last_step(training, first_step, max_steps, budget)
    if first_step >= last_step:
        logger.info("`%s` is complete, nothing is left to train", run.path)
        return first_step
    report = Report(
        run.path,
        training.report_every,
        first_step,
        training.steps,
        step.optimizer.learning_rate,
        training.batch_size * source.max_seq_length,
        flops_per_step=source.flops(step.model),
        peak_flops=_peak_flops(strategy, training) if writes else None,
        waited=lambda: step.waited,
        writes=writes,
    )

    def save(number):
        if not writes:  # all workers hold the same values, and read their own
            return
        kept = {} if budget is None else {"budget": budget.state()}
        variables = checkpoint_variables(step)
        run.checkpoints.save(number, variables, kept, _score(scores, report, number))

    saving = SaveCheckpoints(
        save,
        training.checkpoint_every,
        first_step,
        last_step,
        training.time_limit_seconds,
        agree=functools.partial(any_of, strategy),
    )
    diverged = StopWhenDiverged(
        run.path,
        saving,
        first_step,
        source.numbers,
        already=int(step.guard.skipped_in_row.numpy()),
        writes=writes,
    )
    if hasattr(scores, "saving"):
        scores.saving = saving
    callbacks = [report, *([scores] if scores else []), diverged, saving]
    if budget is not None:
        budget.followers = tuple(each for each in callbacks if hasattr(each, "last_step"))
        callbacks.append(budget)
    with saving:
        try:
            step.fit(
                source.batches(strategy, first_step),
                epochs=1,
                steps_per_epoch=min(
                    max_steps or _ENDLESS, _ENDLESS if budget else last_step - first_step
                ),
                callbacks=callbacks,
                verbose=0,
            )
            saving.save_now()  # if `max_steps` ended it before its plan
        except tf.errors.OpError as error:
            if source.failure is not None:
                raise source.failure from error
            raise
    if diverged.numbers is not None:
        skipped = int(step.guard.skipped_in_row.numpy())
        raise TrainingDiverged(run.path, saving.saved, skipped, diverged.numbers)
    if any_of(strategy, saving.stopped_by is not None):
        raise TrainingStopped(run.path, saving.saved)
    if saving.step < saving.last_step:
        logger.info("time is up at step %d of %d", saving.step, saving.last_step)
    return saving.step


def _follow_budget(strategy, step, training, first_step, state):
    """Makes the FollowBudget of a run with a time budget, or returns None."""
    if training.time_budget is None:
        return None
    budget = FollowBudget(
        TimeBudget(parse_duration(training.time_budget)),
        step.optimizer.learning_rate,
        every=training.report_every,
        first_step=first_step,
        # All workers go by the clock of the first.
        clock=lambda: share(strategy, int(time.monotonic() * 1e6)) / 1e6,
    )
    if "budget" in state:
        budget.restore(state["budget"])
    return budget


def _last_step(training, first_step, max_steps, budget):
    """Returns the step that is to end this call, as far as is known now."""
    last_step = training.steps
    if budget is not None:
        last_step = first_step if first_step and budget.is_over else budget.last_step
    return last_step if max_steps is None else min(last_step, first_step + max_steps)


def _score(scores, report, step):
    """Returns what the best checkpoint is chosen by, or None if this one was not scored."""
    if scores is not None:
        return scores.score if scores.step == step else None
    return report.last_line.get("loss") if report.last_line else None


def _peak_flops(strategy, training):
    """Returns what all replicas together can do, in operations a second, or None."""
    replicas = strategy.num_replicas_in_sync
    if training.peak_tflops is not None:
        return training.peak_tflops * 1e12 * replicas
    peak = measure_peak(training.precision)
    if peak is None:
        return None
    # Logical devices of a CPU share it.
    return peak * (replicas if tf.config.list_logical_devices("GPU") else 1)
