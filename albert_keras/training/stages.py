"""The stages of a pre-training run: their records and settings, and how each of them begins."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.formats.extension import extend_positions
from albert_keras.training.batches import check_batch_size
from albert_keras.training.build import should_skip_padding
from albert_keras.training.config import PretrainingConfig, TrainingConfig
from albert_keras.training.fitting import RunContext
from albert_keras.training.record_source import RecordSource, dynamic_masking
from albert_keras.training.stage_plan import StagePlan, stage_ends
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import uses_dynamic_masks
from data_pipeline.records.record_files import RecordFiles

logger = logging.getLogger(__name__)


class Stage(NamedTuple):
    """What is trained in a stage, or in a run without stages."""

    records: RecordFiles
    training: TrainingConfig  # the settings of the run, with the changes of the stage


def stages_of(
    config: PretrainingConfig,
    records: RecordFiles,
    albert_config: AlbertConfig,
    held_out: RecordFiles | None = None,
) -> tuple[Stage, ...]:
    """Returns the stages of a run, a single one if none are configured, and checks their records.

    Args:
        records: The records of the run, for all stages that have none of their own.
        held_out: The records that the model is scored on.

    Raises:
        InputError: If the records of a stage cannot be opened, or no stage uses the run's records;
            or if records, settings and model do not fit together.
    """
    training = config.training
    shape = albert_config.vocab_size, albert_config.max_position_embeddings
    records.check_for(config.size, *shape)
    stages = _opened(config, records)
    if config.stages:
        shares = [stage.share for stage in config.stages]
        stage_ends(training.steps, shares, training.steps_per_execution)
    for number, stage in enumerate(stages):
        try:
            # Both raise InputError if the settings do not suit the records.
            uses_dynamic_masks(stage.records, stage.training.masks)
            dynamic_masking(stage.records, stage.training)
        except InputError as error:
            raise _in_stage(error, number, stages) from error
    others = [stage.records for stage in stages] + ([] if held_out is None else [held_out])
    for other in others:
        other.check_for(config.size, *shape, records.info.tokenizer_digest)
        if training.sentence_order_weight > 0:
            _check_objective(records, other)
    return stages


def _opened(config, records):
    """Opens the records of each stage."""
    training, opened = config.training, {records.folder.resolve(): records}
    stages = []
    for stage in config.stages:
        folder = (stage.data or records.folder).resolve()
        if folder not in opened:
            opened[folder] = RecordFiles(stage.data)
        stages.append(Stage(opened[folder], training.replace(**stage.changes())))
    fingerprint = records.info.fingerprint
    if stages and all(stage.records.info.fingerprint != fingerprint for stage in stages):
        raise InputError(
            f"At least one stage must be trained on the records of the run, `{records.folder}`. "
            "Received: only stages with records of their own. Use those of one stage, such as the "
            "last, as the records of the run, and omit `stages.data` in that stage."
        )
    return tuple(stages) or (Stage(records, training),)


def check_batch_sizes(stages: Sequence[Stage], strategy: tf.distribute.Strategy):
    """Raises InputError if the batch of a stage cannot be split evenly."""
    for number, stage in enumerate(stages):
        try:
            check_batch_size(strategy, stage.training)
        except InputError as error:
            raise _in_stage(error, number, stages) from error


def _in_stage(error, number, stages):
    return error if len(stages) == 1 else InputError(f"Stage {number + 1}: {error}")


def _check_objective(records, other):
    """Raises InputError unless other records have the objective of the run's records."""
    ours, theirs = records.info.objective, other.info.objective
    if ours != theirs:
        raise InputError(
            f"`{other.folder}` must have the objective of `{records.folder}`. Received: "
            f"{theirs} and {ours}. Build the records with the same objective, "
            "or use `training.sentence_order_weight=0`, which trains masked tokens alone."
        )


class Stages:
    """The stages of a run in this process; `fit` begins them one after the other.

    Attributes:
        plan: StagePlan. The steps of each stage.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        config: PretrainingConfig,  # resolved
        trained_positions: int = 0,  # of the weights that the run starts from
    ):
        self._stages, self._trained_positions = tuple(stages), trained_positions
        training, shares = config.training, [stage.share for stage in config.stages]
        self.plan = StagePlan(
            shares,
            stage_ends(training.steps, shares, training.steps_per_execution),
            [each.training.batch_size * each.records.info.max_seq_length for each in stages],
        )
        self._number = 0  # of the stage that was begun last

    @property
    def failure(self) -> Exception | None:
        """The error that occurred while records were read."""
        return self._stages[self._number].records.failure

    def state(self) -> dict:
        """Returns what a checkpoint says about its stage, and what `resume` needs."""
        begun = self._stages[: self._number + 1]
        described = {
            "number": self._number + 1,
            "ends": list(self.plan.ends),
            "max_seq_length": max(stage.records.info.max_seq_length for stage in begun),
        }
        return {"stages": described}

    def resume(self, context: RunContext):
        """Continues with the stages that a checkpoint describes; a new run has none."""
        context.progress.plan = self.plan
        if context.first_step:
            self.plan.ends = list(context.state["stages"]["ends"])

    def begin(self, number: int, context: RunContext, step: int) -> RecordSource:
        """Prepares the model for a stage, counted from 0, after `step` steps, and describes it."""
        stage, model = self._stages[number], context.training_step
        info = stage.records.info
        logger.info(
            "stage %d of %d from step %s: records `%s`, %d tokens, batch %d",
            number + 1,
            len(self._stages),
            f"{step + 1:,}",
            stage.records.folder,
            info.max_seq_length,
            stage.training.batch_size,
        )
        earlier = [each.records.info.max_seq_length for each in self._stages[:number]]
        seen = max(*earlier, self._trained_positions) if earlier else info.max_seq_length
        if step == self.plan.start_of(number) and seen < info.max_seq_length:
            with context.strategy.scope():
                has_copies = extend_positions(model, model.optimizer, seen, info.max_seq_length)
            if has_copies:
                logger.info(
                    "positions %d to %d start as copies of trained ones",
                    seen + 1,
                    info.max_seq_length,
                )
        model.encoder.skips_padding = should_skip_padding(
            context.strategy, stage.training, info.statistics
        )
        model.forget_graphs()
        self._number = number
        return self._source(number)

    def _source(self, number):
        stage, plan = self._stages[number], self.plan
        before = sum(
            (plan.ends[earlier] - plan.start_of(earlier)) * each.training.batch_size
            for earlier, each in enumerate(self._stages[:number])
            if each.records.info.fingerprint == stage.records.info.fingerprint
        )
        return RecordSource(
            stage.records, stage.training, steps_before=plan.start_of(number), records_before=before
        )
