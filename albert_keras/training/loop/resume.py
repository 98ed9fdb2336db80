"""Creates or resumes a run, with the same result on all workers."""

import json
import logging
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from albert_keras.runs.run import Run
from albert_keras.runs.tensors import training_variables
from albert_keras.training.distributed.cluster import broadcast, is_chief
from albert_keras.training.loop.loop_config import LoopConfig
from albert_keras.training.loop.step import TrainingStep
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

logger = logging.getLogger(__name__)

#: The report of what was loaded into the first weights, beside `run.json`.
LOADED = "loaded.json"


@dataclass(frozen=True)
class RunContext:
    """A run that is trained by this process."""

    strategy: tf.distribute.Strategy
    run: Run
    training: LoopConfig
    source: Any  # the training data
    training_step: TrainingStep  # its state is that of `first_step`
    first_step: int  # steps done by earlier calls
    state: dict[str, Any]  # state saved beside the variables of `first_step`

    @property
    def is_chief(self):
        """bool. Whether this process is the worker that writes the run."""
        return is_chief(self.strategy)


def create_or_resume(
    strategy, out, config, albert_config, source, training_step, allow_changes=()
) -> RunContext:
    """Creates the folder of a run, or opens it and restores its newest valid checkpoint.

    The first worker writes the folder, as `Run.create_or_resume`, which explains the arguments. The
    training step receives the state of the checkpoint. Call it in the scope of the strategy.

    Raises:
        InputError: As `Run.create_or_resume`; or if all checkpoints are damaged, or the newest does
            not fit.
    """
    run = _open_run(strategy, out, config, albert_config, source, allow_changes)
    newest = run.checkpoints.newest_valid() if is_chief(strategy) else None
    first_step, state = broadcast(strategy, newest or 0), {}
    if first_step:
        state = run.checkpoints.load(first_step, checkpoint_variables(training_step))
        training_step.optimizer.iterations.assign(first_step)
        training_step.keep_means()
        logger.info("%s", run.resume_banner(first_step))
    return RunContext(strategy, run, config.training, source, training_step, first_step, state)


def _open_run(strategy, out, config, albert_config, source, allow_changes):
    if not is_chief(strategy):
        if not broadcast(strategy, 0):
            raise InputError(f"Worker 0 could not start the run `{out}`. See its error message.")
        return Run.open(out)
    try:
        run = Run.create_or_resume(out, config, albert_config, source, allow_changes)
    except BaseException:
        broadcast(strategy, 0)  # or the others would wait forever
        raise
    broadcast(strategy, 1)
    return run


def report_loaded(context: RunContext, lines: list[str]):
    """Logs what was loaded into the first weights and saves it in the run."""
    for line in lines:
        logger.info("%s", line)
    if context.is_chief:
        with whole_file(context.run.path / LOADED) as temporary:
            temporary.write_text(json.dumps(lines, indent=2) + "\n", encoding="utf-8")


def checkpoint_variables(training_step: TrainingStep) -> dict[str, tf.Variable]:
    """Returns everything that a checkpoint contains, by name."""
    return training_variables(training_step.model, training_step.optimizer) | training_step.state
