"""Where a run begins: its folder, and the checkpoint to go on from, the same for all workers."""

import logging

from albert_keras.runs.run import Run
from albert_keras.runs.tensors import training_variables
from albert_keras.training.distributed.cluster import is_chief, share
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)


def open_run(strategy, out, config, albert_config, source, allow_changes=()):
    """Makes the folder of a run or opens it; of several workers the first makes it.

    Args:
        strategy: tf.distribute.Strategy.
        out: str or Path.
        config: PretrainingConfig or FinetuneConfig, resolved.
        albert_config: AlbertConfig.
        source: RecordSource or another with its methods.
        allow_changes: iterable of str. See `Run.begin`.

    Returns:
        Run.

    Raises:
        InputError: As `Run.begin`.
    """
    if is_chief(strategy):
        try:
            run = Run.begin(out, config, albert_config, source, allow_changes)
        except BaseException:
            share(strategy, 0)  # or the others would wait for ever
            raise
        share(strategy, 1)
        return run
    if not share(strategy, 0):
        raise InputError(f"Worker 0 could not begin the run `{out}`; its message says why.")
    return Run.open(out)


def checkpoint_variables(step):
    """Names everything a checkpoint of a TrainingStep holds: dict of name -> variable."""
    return training_variables(step.model, step.optimizer) | step.state


def restore(strategy, run, step):
    """Loads the newest sound checkpoint of a run, if it has any.

    Args:
        strategy: tf.distribute.Strategy.
        run: Run.
        step: TrainingStep. What to load it into.

    Returns:
        tuple of int and dict. Steps done, and the state saved beside the variables.

    Raises:
        InputError: If all checkpoints are damaged, or the newest does not fit.
    """
    newest = run.checkpoints.newest_sound() if is_chief(strategy) else None
    newest = share(strategy, newest or 0)
    if not newest:
        return 0, {}
    state = run.checkpoints.load(newest, checkpoint_variables(step))
    step.optimizer.iterations.assign(newest)
    step.keep_means()
    logger.info("%s, from step %d", run.banner(), newest)
    return newest, state
