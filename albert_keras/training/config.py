"""Configuration of a pre-training run: model, training and optimizer together."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from albert_keras.config import AlbertConfig
from albert_keras.optimization.config import OptimizerConfig
from albert_keras.training.loop.flagged_config import FlaggedConfig
from albert_keras.training.loop.loop_config import LoopConfig
from data_pipeline.config import MASKS
from data_pipeline.errors import InputError


class TrainingConfig(LoopConfig):
    """How long, how wide and how careful to pre-train; see `LoopConfig` for the rest.

    Attributes:
        steps: int. Optimizer steps.
        checkpoint_every: int. Steps between checkpoints; the last step is always saved.
        evaluate_every: int. Steps between scores on held-out records, if any are given.
        sentence_order_weight: float. Weight of the sentence-order loss beside the masked one;
            0 trains the masked language model alone, as records without such labels do.
        initial_output_bias: str. "frequencies" starts the masked-LM head at how frequent each piece
            is, which spares the hundred steps that learn it; "zeros" as google-research/albert.
        masks: str. "static" ones stand in the records; "dynamic" ones are drawn anew in each
            epoch, the same again when a run goes on; "auto" takes static ones if there are any.
    """

    steps: int = Field(2000, ge=1)
    checkpoint_every: int = Field(500, ge=1)
    evaluate_every: int = Field(1000, ge=1)
    sentence_order_weight: float = Field(1.0, ge=0)
    initial_output_bias: Literal["frequencies", "zeros"] = "frequencies"
    masks: Literal[MASKS] = "auto"


#: The named model if nothing is said.
_SIZE = "albert-mini"

#: Peak rate of LAMB for models that learn something in a few hundred steps on a CPU, at batches of
#: 32 to 64. The rule for large batches would have them stand still: 1.6e-4 at 32.
SMALL_MODEL_LR = {"albert-tiny": 0.003, "albert-mini": 0.003}

#: Words of the command line and of `pretrain` -> keys of the configuration.
FLAGS = {
    "size": ("model", "size"),
    "steps": ("training", "steps"),
    "batch_size": ("training", "batch_size"),
    "seed": ("training", "seed"),
    "strategy": ("training", "strategy"),
    "precision": ("training", "precision"),
    "checkpoint_every": ("training", "checkpoint_every"),
    "masks": ("training", "masks"),
    "accumulation_steps": ("training", "accumulation_steps"),
    "recompute": ("training", "recompute"),
    "steps_per_execution": ("training", "steps_per_execution"),
    "evaluate_every": ("training", "evaluate_every"),
    "time_budget": ("training", "time_budget"),
    "peak_tflops": ("training", "peak_tflops"),
    "lr": ("optimizer", "lr"),
}


class PretrainingConfig(FlaggedConfig):
    """Everything that decides a pre-training run, but for its data.

    Attributes:
        model: dict. `size`, a name of `AlbertConfig.names()`, and any field of AlbertConfig to
            change in it. `vocab_size` follows from the records; all of it from the weights to
            begin with, if there are any.
        training: TrainingConfig.
        optimizer: OptimizerConfig.
    """

    flags: ClassVar[dict[str, tuple[str, str]]] = FLAGS

    model: dict[str, Any] = Field(default_factory=lambda: {"size": _SIZE})
    training: TrainingConfig = TrainingConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    @field_validator("model")
    @classmethod
    def _is_a_model(cls, model):
        _albert_config(model)
        return model

    @property
    def size(self):
        """str. The named model that `model` changes."""
        return self.model.get("size", _SIZE)

    def resolved(self, precision, has_sentence_labels=True):
        """Returns a copy in which nothing is left to be decided.

        Args:
            precision: str. What "auto" means here.
            has_sentence_labels: bool. Whether the records have any to predict.

        Raises:
            InputError: If a sentence-order loss is asked for and the records have no labels.
        """
        lr = self.optimizer.peak_lr(self.training.batch_size)
        if "lr" not in self.optimizer.model_fields_set:
            lr = SMALL_MODEL_LR.get(self.size, lr)
        if self.training.precision != "auto":
            precision = self.training.precision
        config = self.with_flags(lr=lr, precision=precision, size=self.size)
        if has_sentence_labels or config.training.sentence_order_weight == 0:
            return config
        if "sentence_order_weight" in self.training.model_fields_set:
            raise InputError(
                "`training.sentence_order_weight` should be 0: the records were built with "
                f"objective=none. Received: {self.training.sentence_order_weight}."
            )
        return config.replace(training=config.training.replace(sentence_order_weight=0.0))

    def albert_config(self, vocab_size):
        """Makes the model's AlbertConfig for records of a vocabulary.

        Raises:
            SettingsError: If `model.vocab_size` is given and differs.
        """
        return _albert_config({"vocab_size": vocab_size} | self.model)


def _albert_config(model):
    changes = {key: value for key, value in model.items() if key != "size"}
    return AlbertConfig.from_name(model.get("size", _SIZE), **changes)
