"""Configuration of a pre-training run: model, training and optimizer together."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from albert_keras.config import AlbertConfig
from albert_keras.optimization.config import OptimizerConfig
from albert_keras.training.names import PRECISIONS, STRATEGIES
from albert_keras.training.time_budget import parse_duration
from data_pipeline.config import MASKS
from data_pipeline.errors import InputError
from data_pipeline.settings import Rule, Settings


class TrainingConfig(Settings):
    """How long, how wide and how careful.

    Attributes:
        steps: int. Optimizer steps.
        batch_size: int. Global batch size, B, over all replicas.
        seed: int. Decides the first weights and the order of the records.
        strategy: str. Where to train, see `strategy.py`.
        precision: str. "float32", "mixed_bfloat16" (float32 weights, bfloat16 products),
            "mixed_float16" (the same with float16 and a scaled loss), or "auto", see
            `choose_precision`.
        accumulation_steps: int. Parts each replica splits its share of the batch into, one after
            the other: memory for one part, the update of the whole batch.
        recompute: bool. Whether blocks are computed again for their gradient instead of kept: about
            a third more work, several times less memory.
        padding: str. "skip" spends (almost) no work on padding, with shapes that depend on the
            batch; "compute" treats it like text, as TPUs need it; "auto" skips it where that pays.
        steps_per_execution: int. Steps between two looks of the host at the run; TPUs want
            hundreds.
        skip_spikes: bool. Whether to leave out updates whose loss is far out of line, see
            `UpdateGuard`. Those that are not finite are left out always.
        checkpoint_every: int. Steps between checkpoints; the last step is always saved.
        keep_checkpoints: int. The newest this many stay.
        report_every: int. Steps between lines of the log.
        sentence_order_weight: float. Weight of the sentence-order loss beside the masked one;
            0 trains the masked language model alone, as records without such labels do.
        initial_output_bias: str. "frequencies" starts the masked-LM head at how frequent each piece
            is, which spares the hundred steps that learn it; "zeros" as google-research/albert.
        masks: str. "static" ones stand in the records; "dynamic" ones are drawn anew in each
            epoch, the same again when a run goes on; "auto" takes static ones if there are any.
        time_limit_seconds: float or None. Ends the run early, saved, once training has taken this
            long; the same command goes on with it.
        time_budget: str or None. Time all training of the run may take, such as "8h" or "1h30m":
            the schedule is stretched so that it ends then, whatever `steps` is.
        evaluate_every: int. Steps between scores on held-out records, if any are given.
        peak_tflops: float or None. What one replica can do at most, in 10^12 floating-point
            operations a second, for the share used; None measures it (not on a TPU).
    """

    steps: int = Field(2000, ge=1)
    batch_size: int = Field(32, ge=1)
    seed: int = Field(12345, ge=0)
    strategy: Literal[STRATEGIES] = "auto"
    precision: Literal[PRECISIONS] = "auto"
    accumulation_steps: int = Field(1, ge=1)
    recompute: bool = False
    padding: Literal["auto", "skip", "compute"] = "auto"
    steps_per_execution: int = Field(1, ge=1)
    skip_spikes: bool = False
    checkpoint_every: int = Field(500, ge=1)
    keep_checkpoints: int = Field(3, ge=1)
    report_every: int = Field(50, ge=1)
    sentence_order_weight: float = Field(1.0, ge=0)
    initial_output_bias: Literal["frequencies", "zeros"] = "frequencies"
    masks: Literal[MASKS] = "auto"
    time_limit_seconds: float | None = Field(None, gt=0)
    time_budget: str | None = None
    evaluate_every: int = Field(1000, ge=1)
    peak_tflops: float | None = Field(None, gt=0)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("checkpoint_every", "steps_per_execution"),
            lambda every, together: every % together == 0,
            "should be a multiple of `steps_per_execution`",
        ),
        Rule(
            ("report_every", "steps_per_execution"),
            lambda every, together: every % together == 0,
            "should be a multiple of `steps_per_execution`",
        ),
    )

    @field_validator("time_budget")
    @classmethod
    def _is_a_duration(cls, time_budget):
        try:
            parse_duration("1s" if time_budget is None else time_budget)
        except InputError:
            raise ValueError('should be a duration such as "8h", "1h30m" or "2d"') from None
        return time_budget


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


class PretrainingConfig(Settings):
    """Everything that decides a pre-training run, but for its data.

    Attributes:
        model: dict. `size`, a name of `AlbertConfig.names()`, and any field of AlbertConfig to
            change in it. `vocab_size` follows from the records.
        training: TrainingConfig.
        optimizer: OptimizerConfig.
    """

    model: dict[str, Any] = Field(default_factory=lambda: {"size": "albert-mini"})
    training: TrainingConfig = TrainingConfig()
    optimizer: OptimizerConfig = OptimizerConfig()

    @field_validator("model")
    @classmethod
    def _is_a_model(cls, model):
        model = {"size": "albert-mini"} | model
        _albert_config(model)
        return model

    @classmethod
    def of(cls, values, **flags):
        """Makes a configuration from nested values, as of a file, and single flags.

        Args:
            values: dict. `model`, `training`, `optimizer`, each a dict.
            **flags: Values by the words of `FLAGS`, which win; None means not given.
        """
        values = {name: dict(section) for name, section in values.items()}
        for word, value in flags.items():
            if word not in FLAGS:
                raise TypeError(f"`{word}` is not one of {', '.join(FLAGS)}.")
            if value is not None:
                section, key = FLAGS[word]
                values.setdefault(section, {})[key] = value
        return cls(**values)

    def with_flags(self, **flags):
        """Returns a checked copy with some flags changed, see `of`."""
        return type(self).of(self.model_dump(exclude_unset=True), **flags)

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
            lr = SMALL_MODEL_LR.get(self.model["size"], lr)
        if self.training.precision != "auto":
            precision = self.training.precision
        config = self.with_flags(lr=lr, precision=precision)
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
    return AlbertConfig.from_name(model["size"], **changes)
