"""One call of `fit`: what watches over it, and how it ends."""

import functools
import logging
import time

import tensorflow as tf

from albert_keras.training.batches import training_batches
from albert_keras.training.cluster import any_of, is_chief, share
from albert_keras.training.divergence import StopWhenDiverged
from albert_keras.training.errors import TrainingDiverged, TrainingStopped
from albert_keras.training.flops import training_flops
from albert_keras.training.follow_budget import FollowBudget
from albert_keras.training.held_out import ScoreHeldOut
from albert_keras.training.peak import measure_peak
from albert_keras.training.reports import Report
from albert_keras.training.resume import checkpoint_variables
from albert_keras.training.saving import SaveCheckpoints
from albert_keras.training.time_budget import TimeBudget, parse_duration
from data_pipeline.reader import training_numbers

logger = logging.getLogger(__name__)

#: Steps of a run that the clock ends.
_ENDLESS = 10**9


def fit(strategy, step, run, config, records, held_out, first_step, state, max_steps=None):
    """Trains until the last step of a run, a signal, or the end of its time.

    Args:
        strategy: tf.distribute.Strategy.
        step: PretrainingStep, restored.
        run: Run.
        config: PretrainingConfig, resolved.
        records: RecordFiles.
        held_out: RecordFiles or None.
        first_step: int. Steps done before.
        state: dict. What was saved beside the variables.
        max_steps: int or None. Steps to do now at most.

    Returns:
        int. Steps the run has now.

    Raises:
        TrainingStopped, TrainingDiverged, WorkerLost, InputError: See `pretrain`.
    """
    training, writes = config.training, is_chief(strategy)
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
        training.batch_size * records.info.max_seq_length,
        flops_per_step=_flops_per_step(step, records, training),
        peak_flops=_peak_flops(strategy, training) if writes else None,
        waited=lambda: step.waited,
        writes=writes,
    )
    scores = None
    if held_out is not None:
        with strategy.scope():
            scores = ScoreHeldOut(
                run.path,
                held_out,
                step,
                training.evaluate_every,
                first_step,
                training.steps,
                writes,
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
        lambda number: training_numbers(number, training.batch_size, len(records), training.seed),
        already=int(step.guard.skipped_in_row.numpy()),
        writes=writes,
    )
    callbacks = [report, *([scores] if scores else []), diverged, saving]
    if budget is not None:
        budget.followers = tuple(each for each in callbacks if hasattr(each, "last_step"))
        callbacks.append(budget)
    with saving:
        try:
            step.fit(
                training_batches(strategy, records, training, first_step),
                epochs=1,
                steps_per_epoch=min(
                    max_steps or _ENDLESS, _ENDLESS if budget else last_step - first_step
                ),
                callbacks=callbacks,
                verbose=0,
            )
            saving.save_now()  # if `max_steps` ended it before its plan
        except tf.errors.OpError as error:
            if records.failure is not None:
                raise records.failure from error
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


def _flops_per_step(step, records, training):
    info = records.info
    return training_flops(
        step.model.config,
        training.batch_size,
        info.max_seq_length,
        info.max_predictions_per_seq,
        sentence_head=step.model.sentence_order_head is not None,
    )


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
