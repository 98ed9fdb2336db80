"""Configuration of a pre-training run: model, training and optimizer."""

import math
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from albert_keras.config import AlbertConfig
from albert_keras.optimization.config import OptimizerConfig
from albert_keras.training.loop_config import LoopConfig, RunConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import Problem, Settings, SettingsError, did_you_mean, option, setting


class TrainingConfig(LoopConfig):
    """Length, checkpoints and losses of pre-training."""

    steps: int = option(2000, "Number of optimizer steps.", ge=1)
    checkpoint_every: int = option(
        500, "Steps between checkpoints; the last step is always saved.", ge=1
    )
    evaluate_every: int = option(1000, "Steps between evaluations on held-out records.", ge=1)
    sentence_order_weight: float = setting(
        1.0,
        "Weight of the sentence-order loss relative to the masked-LM loss. 0 trains "
        "the masked language model alone, as for records without sentence-order labels.",
        ge=0,
    )
    initial_output_bias: Literal["frequencies", "zeros"] = setting(
        "frequencies",
        "frequencies initializes the bias of the masked-LM head with the log "
        "frequencies of the vocabulary, which saves the hundred steps that learn them. zeros is "
        "google-research/albert.",
    )
    masks: Literal["auto", "static", "dynamic"] = option(
        "auto",
        "static masks are stored in the records, dynamic ones are sampled again in each epoch. "
        "auto uses static masks if the records contain them.",
    )
    mask_rate: float | None = setting(
        None,
        "Fraction of the tokens to predict with dynamic masks; None takes the value of the "
        "records.",
        gt=0,
        lt=1,
    )


class StageConfig(Settings):
    """A stage of a run: its share of the run, and the settings that differ from the run's."""

    share: float = setting(
        ..., "Fraction of the steps of the run, or of its time budget.", gt=0, le=1
    )
    data: Path | None = setting(
        None, "Folder of records built with the run's tokenizer; None takes the run's records."
    )
    batch_size: int | None = setting(
        None, "Global batch size, over all replicas; None takes the value of the run.", ge=1
    )
    mask_rate: float | None = setting(
        None,
        "Fraction of the tokens to predict with dynamic masks; None takes the value of the run.",
        gt=0,
        lt=1,
    )

    def changes(self) -> dict:
        """Returns the settings of the training in which the stage differs from the run."""
        return self.model_dump(include={"batch_size", "mask_rate"}, exclude_none=True)


#: Default of `model.size`.
_SIZE = "albert-mini"
#: By how much the sum of shares may differ from 1: three of 0.333 are meant to be a third each.
_TOLERANCE = 0.002


class PretrainingConfig(RunConfig):
    """All settings of a pre-training run except its data.

    Attributes:
        model: dict. `size`, a name of `AlbertConfig.names()`, and any field of AlbertConfig that
            differs from it. `vocab_size` follows from the records. If the run starts from existing
            weights, their configuration replaces all of it.
        training: TrainingConfig.
        optimizer: OptimizerConfig.
        stages: tuple of StageConfig. Parts of the run, one after the other, that differ in records,
            batch size or masks; () for a run without stages. The learning-rate schedule and
            the batch size that `lr` is computed from apply to the whole run.
    """

    model: dict[str, Any] = option(
        {"size": _SIZE},
        "Named model, such as albert-base.",
        keyword="size",
        key="size",
    )
    training: TrainingConfig = TrainingConfig()
    optimizer: OptimizerConfig = OptimizerConfig()
    stages: tuple[StageConfig, ...] = setting(
        (), "Parts of the run, one after the other, that differ in records or batch size."
    )

    @field_validator("model")
    @classmethod
    def _is_a_model(cls, model):
        size, names = model.get("size", _SIZE), AlbertConfig.names()
        if size not in names:
            message = f"is unknown. Received: {size!r}{did_you_mean(str(size), names)}"
            raise SettingsError("model", [Problem(("size",), message)])
        _albert_config(model)
        return model

    @field_validator("stages", mode="before")
    @classmethod
    def _is_a_list(cls, stages):
        if not isinstance(stages, list | tuple):
            raise ValueError("must be a list of stages, each with its `share`")
        return stages

    @field_validator("stages")
    @classmethod
    def _shares_sum_to_1(cls, stages):
        shares = [stage.share for stage in stages]
        if shares and abs(math.fsum(shares) - 1) > _TOLERANCE:
            sum_of = " + ".join(f"{share:g}" for share in shares)
            message = f"must sum to 1 over all stages. Received: {sum_of} = {math.fsum(shares):g}."
            raise SettingsError("stages", [Problem(("0", "share"), message)])
        return stages

    @property
    def size(self):
        """str. The named model that `model` is based on."""
        return self.model.get("size", _SIZE)

    def chosen_optimizer(self, on_tpu: bool = False) -> OptimizerConfig:
        """Returns the optimizer and the learning rate that "auto" means for model and batch."""
        hidden_size = _albert_config(self.model).hidden_size
        return self.optimizer.resolved(self.training.batch_size, hidden_size, on_tpu)

    def resolved(
        self, precision: str, has_sentence_labels: bool = True, on_tpu: bool = False
    ) -> "PretrainingConfig":
        """Returns a copy in which every "auto" is replaced by a value.

        Args:
            precision: Value for the precision "auto".
            has_sentence_labels: Whether the records have sentence-order labels.
            on_tpu: Whether a TPU trains the model.

        Raises:
            InputError: If a sentence-order loss is requested and the records have no labels.
        """
        if self.training.precision != "auto":
            precision = self.training.precision
        config = self.replace(optimizer=self.chosen_optimizer(on_tpu))
        config = config.with_flags(precision=precision, size=self.size)
        if has_sentence_labels or config.training.sentence_order_weight == 0:
            return config
        if "sentence_order_weight" in self.training.model_fields_set:
            raise InputError(
                "`training.sentence_order_weight` must be 0: the records have no sentence-order "
                "labels because they were built with objective=none. "
                f"Received: {self.training.sentence_order_weight}."
            )
        return config.replace(training=config.training.replace(sentence_order_weight=0.0))

    def albert_config(self, vocab_size: int) -> AlbertConfig:
        """Returns the model's AlbertConfig for records with a vocabulary of this size."""
        return _albert_config({"vocab_size": vocab_size} | self.model)


def _albert_config(model):
    changes = {key: value for key, value in model.items() if key != "size"}
    return AlbertConfig.from_name(model.get("size", _SIZE), **changes)
