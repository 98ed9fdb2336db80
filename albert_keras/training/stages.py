"""The stages of a pre-training run: their records and settings, and how each of them begins."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.position_extension import extend_positions
from albert_keras.runs.log_file import keep_log_until, log_stage
from albert_keras.training.batches import check_batch_size, chosen_records
from albert_keras.training.build import should_skip_padding
from albert_keras.training.config import PretrainingConfig, TrainingConfig
from albert_keras.training.fitting import RunContext
from albert_keras.training.flops import training_flops
from albert_keras.training.record_source import RecordSource, dynamic_masking
from albert_keras.training.stage_plan import StagePlan, stage_ends
from data_pipeline.errors import InputError, Mistake
from data_pipeline.reader.reader import uses_dynamic_masks
from data_pipeline.records.record_folder import RecordFiles

logger = logging.getLogger(__name__)

#: What to do about records with different objectives.
SAME_OBJECTIVE = (
    "Build the records with the same --objective, or use --set training.sentence_order_weight=0, "
    "which trains masked tokens alone."
)


class Stage(NamedTuple):
    """What is trained in a stage, or in a run without stages."""

    records: RecordFiles
    training: TrainingConfig  # the settings of the run, with the changes of the stage
    num_hidden_layers: int


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
    any_objective = config.training.sentence_order_weight == 0
    _check_records(records, held_out, albert_config, any_objective)
    stages = _opened(config, records, albert_config)
    check_stages(stages, config)
    for stage in stages:
        _check_shape(stage.records, albert_config)
    return stages


def _opened(config, records, albert_config):
    """Opens the records of each stage."""
    full = albert_config.num_hidden_layers
    if not config.stages:
        return (Stage(records, config.training, full),)
    opened = {records.folder.resolve(): records}
    stages = []
    for stage in config.stages:
        folder = stage.data or records.folder
        own = opened.setdefault(folder.resolve(), None) or RecordFiles(folder)
        opened[folder.resolve()] = own
        training = _training_of(stage, config)
        stages.append(Stage(own, training, stage.num_hidden_layers or full))
    if all(stage.records.info.fingerprint != records.info.fingerprint for stage in stages):
        raise InputError(
            f"At least one stage must be trained on the records of the run, `{records.folder}`. "
            "Received: only stages with `data` of their own. Use the records of one stage, such as "
            "the last, as the records of the run, and omit `data` in that stage."
        )
    return tuple(stages)


def with_settings(stages: Sequence[Stage], config: PretrainingConfig) -> tuple[Stage, ...]:
    """Returns the stages of `stages_of` with the settings of the resolved configuration."""
    if not config.stages:
        return tuple(stage._replace(training=config.training) for stage in stages)
    return tuple(
        stage._replace(training=_training_of(described, config))
        for stage, described in zip(stages, config.stages, strict=True)
    )


def _training_of(stage, config):
    """Returns the TrainingConfig of a stage, a StageConfig, in a run."""
    return config.training.replace(**stage.changes("batch_size", "mask_rate", "leave_unmasked"))


def check_stages(stages: Sequence[Stage], config: PretrainingConfig):
    """Raises InputError if the stages do not fit their settings, their records or the steps."""
    training = config.training
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
    any_objective, first = training.sentence_order_weight == 0, stages[0].records
    for number, stage in enumerate(stages):
        ours, theirs = first.info, stage.records.info
        digests = {ours.tokenizer_digest, theirs.tokenizer_digest} - {None}  # None is unknown
        if len(digests) > 1:
            raise InputError(
                "The records of all stages must be built with the same tokenizer. Received: "
                f"{ours.tokenizer_digest} in `{first.folder}` (stage 1), {theirs.tokenizer_digest} "
                f"in `{stage.records.folder}` (stage {number + 1}). Build the records with "
                f"--tokenizer {first.folder}/tokenizer."
            )
        if ours.objective != theirs.objective and not any_objective:
            raise InputError(
                "The records of all stages must have the same objective. Received: "
                f"{ours.objective} in `{first.folder}` (stage 1), {theirs.objective} in "
                f"`{stage.records.folder}` (stage {number + 1}). {SAME_OBJECTIVE}"
            )


def check_batch_sizes(stages: Sequence[Stage], strategy: tf.distribute.Strategy):
    """Raises InputError if the batch of a stage cannot be split evenly."""
    for number, stage in enumerate(stages):
        try:
            check_batch_size(strategy, stage.training)
        except InputError as error:
            raise _in_stage(error, number, stages) from error


def _in_stage(error, number, stages):
    return error if len(stages) == 1 else InputError(f"Stage {number + 1}: {error}")


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


class Stages:
    """The stages of a run in this process; `fit` begins them one after the other.

    Attributes:
        plan: StagePlan. The steps of each stage.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        config: PretrainingConfig,  # resolved
        albert_config: AlbertConfig,
        trained_positions: int = 0,  # of the weights that the run starts from
    ):
        self._stages, self._config, self._shape = tuple(stages), config, albert_config
        self._trained_positions = trained_positions
        training, shares = config.training, [stage.share for stage in config.stages]
        self.plan = StagePlan(
            shares,
            stage_ends(training.steps, shares, training.steps_per_execution),
            [self._flops(stage) for stage in stages],
            training.steps_per_execution,
        )
        self._number = 0  # of the stage that was begun last

    @property
    def failure(self) -> Exception | None:
        """The error that occurred while records were read."""
        return self._stages[self._number].records.failure

    def state(self) -> dict:
        """Returns what a checkpoint says about its stage, and what `resume` needs."""
        begun = self._stages[: self._number + 1]
        return {
            "number": self._number + 1,
            "ends": list(self.plan.ends),
            "num_hidden_layers": begun[-1].num_hidden_layers,
            "max_seq_length": max(stage.records.info.max_seq_length for stage in begun),
        }

    def resume(self, context: RunContext):
        """Continues with the stages that a checkpoint describes, or prepares for the first one."""
        if context.first_step == 0:
            context.training_step.num_hidden_layers = self._stages[0].num_hidden_layers
            return
        # A run that began without stages has none in its checkpoints.
        saved = context.state.get("stages", {})
        ends = saved.get("ends", ())
        context.training_step.num_hidden_layers = int(
            saved.get("num_hidden_layers", self._shape.num_hidden_layers)
        )
        is_planned = context.training.time_budget is not None
        self.plan.resume(context.first_step, ends, is_planned)

    def begin(self, number: int, context: RunContext, step: int) -> RecordSource:
        """Prepares the model for a stage, counted from 0, after `step` steps, and describes it.

        The layers that a deeper stage adds share the trained weights.

        Raises:
            InputError: If the stages were changed, and the model would have to shrink.
        """
        stage, training_step = self._stages[number], context.training_step
        depth, before = stage.num_hidden_layers, training_step.num_hidden_layers
        if depth < before:
            raise InputError(
                f"`stages.{number}.num_hidden_layers` must be at least {before}, the depth that "
                f"the model has at step {step:,}. Received: {depth}."
            )
        info = stage.records.info
        logger.info(
            "stage %d of %d from step %s: records `%s`, %d tokens, batch %d, %d layer%s",
            number + 1,
            len(self._stages),
            f"{step + 1:,}",
            stage.records.folder,
            info.max_seq_length,
            stage.training.batch_size,
            depth,
            "" if depth == 1 else "s",
        )
        with context.strategy.scope():
            earlier = [each.records.info.max_seq_length for each in self._stages[:number]]
            seen = max(*earlier, self._trained_positions) if earlier else info.max_seq_length
            is_longer = step == self.plan.start_of(number) and seen < info.max_seq_length
            if is_longer and extend_positions(
                training_step, training_step.optimizer, seen, info.max_seq_length
            ):
                logger.info(
                    "positions %d to %d start as copies of trained ones",
                    seen + 1,
                    info.max_seq_length,
                )
        training_step.num_hidden_layers = depth
        training_step.encoder.skips_padding = should_skip_padding(
            context.strategy, stage.training, info.statistics
        )
        training_step.forget_graphs()
        if context.is_chief:
            described = {
                "number": number + 1,
                "max_seq_length": info.max_seq_length,
                "batch_size": stage.training.batch_size,
                "num_hidden_layers": depth,
            }
            keep_log_until(context.run.path, step)
            log_stage(context.run.path, self.plan.start_of(number), described)
        self._number = number
        return self._source(number)

    def numbers(self, step: int):
        """Returns the numbers of the records seen after this number of steps: int64 [B]."""
        return self._source(self.plan.number_at(step)).numbers(step)

    def _source(self, number):
        stage, plan = self._stages[number], self.plan
        before = sum(
            (plan.ends[earlier] - plan.start_of(earlier)) * each.training.batch_size
            for earlier, each in enumerate(self._stages[:number])
            if each.records.info.fingerprint == stage.records.info.fingerprint
        )
        return RecordSource(
            stage.records,
            stage.training,
            steps_before=plan.start_of(number),
            records_before=before,
            num_hidden_layers=stage.num_hidden_layers,
        )

    def _flops(self, stage):
        info = stage.records.info
        return training_flops(
            self._shape.replace(num_hidden_layers=stage.num_hidden_layers),
            chosen_records(stage.training),
            info.max_seq_length,
            info.max_predictions_per_seq,
            sentence_head=self._config.training.sentence_order_weight > 0,
        )
