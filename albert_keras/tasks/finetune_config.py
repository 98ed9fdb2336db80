"""Configuration of a fine-tuning: task, changes of the model, training and optimizer."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from albert_keras.config import AlbertConfig
from albert_keras.models.feature_settings import FeatureSettings
from albert_keras.optimization.config import (
    FinetuneOptimizer,
    finetuning_lr,
    finetuning_optimizer,
)
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.loop_config import LoopConfig, RunConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import option, setting

if TYPE_CHECKING:  # a task loads NumPy and scikit-learn, which `--help` must not wait for
    from albert_keras.tasks.task import Task

#: Default number of passes over the training examples, and the updates that few examples need.
USUAL_EPOCHS, LEAST_STEPS = 3.0, 250
#: Evaluations and checkpoints in a run.
_TIMES = 10
#: A larger number of trainings is most likely a seed, such as the default 12345.
_MOST_TRAININGS = 100


class ModelChanges(FeatureSettings):
    """What fine-tuning changes in the model; None keeps the value of the pre-trained model.

    Whether the encoder is fine-tuned at all, and what a head reads from a frozen one, is in the
    fields of FeatureSettings.
    """

    hidden_dropout_prob: float | None = setting(
        None, "Dropout rate of hidden states in the encoder.", ge=0, lt=1
    )
    attention_probs_dropout_prob: float | None = setting(
        None, "Dropout rate of attention weights in the encoder.", ge=0, lt=1
    )
    head_dropout: float = setting(
        0.1, "Dropout rate before the last layer of the head.", ge=0, lt=1
    )
    max_position_embeddings: int | None = setting(
        None, "Longest sequence, in tokens; new positions start as copies of trained ones.", ge=1
    )
    attention: Literal["dense", "block-sparse"] | None = setting(
        None, "dense attention, or block-sparse attention for long texts, with the same weights."
    )
    attention_block_size: int | None = setting(
        None, "Positions per block of block-sparse attention.", ge=1
    )
    attention_window_blocks: int | None = setting(
        None, "Number of neighbouring blocks that a block attends to, including itself; odd.", ge=1
    )
    attention_global_blocks: int | None = setting(
        None,
        "Number of leading blocks, which attend to all positions and to which all attend.",
        ge=0,
    )
    attention_random_blocks: int | None = setting(
        None, "Number of random blocks that a block also attends to.", ge=0
    )
    attention_seed: int | None = setting(None, "Random seed of the random blocks.", ge=0)

    def applied(self, albert_config):
        """Returns an AlbertConfig with these changes."""
        of_head = {"head_dropout", *FeatureSettings.model_fields}
        changes = self.model_dump(exclude=of_head, exclude_none=True)
        return albert_config.replace(**changes) if changes else albert_config

    def check(self, albert_config: AlbertConfig, task: "Task") -> None:
        """Raises InputError unless a model of this task can have these changes."""
        if self.freeze_encoder:
            self.layer_numbers(albert_config)
            if task.kind == "similarity":
                raise InputError(
                    "`freeze_encoder` must not be used for similarity: its model has no weights "
                    "besides the encoder's, so there is nothing to train. Fine-tune the "
                    "encoder, or compare texts with `albert-keras similar` without training."
                )


class FinetuneTraining(LoopConfig):
    """Length, evaluations and checkpoints of fine-tuning."""

    epochs: float | None = option(
        None,
        "Passes over the training examples.",
        default_text=f"{USUAL_EPOCHS:g}, or {LEAST_STEPS} updates where these are more",
        gt=0,
    )
    steps: int | None = option(None, "Number of optimizer steps, instead of epochs.", ge=1)
    evaluate_every: int | None = option(
        None,
        "Steps between evaluations on development examples; the best checkpoint is kept.",
        default_text="a tenth of the run, or longer where it would take longer than the training",
        ge=1,
    )
    patience: int | None = option(
        None,
        "Stop after this number of evaluations without a better score.",
        default_text="never",
        ge=1,
    )
    checkpoint_every: int | None = option(
        None, "Steps between checkpoints for resuming.", default_text="a tenth of the run", ge=1
    )
    keep_checkpoints: int = setting(
        1, "Number of newest checkpoints to keep, besides the best one.", ge=1
    )
    keep_optimizer_state: bool = setting(
        False,
        "Keep at the end the newest checkpoints, with the optimizer's moments, not only the best "
        "weights.",
    )
    initial_output_bias: Literal["frequencies", "zeros"] = setting(
        "frequencies",
        "frequencies initializes the bias of tagging and of several labels per text with their "
        "log frequencies, so that no update has to learn them. All other tasks begin with zeros.",
    )
    eval_batch_size: int = setting(
        64, "Rows per device and batch in evaluation and prediction.", ge=1, le=2**20
    )

    def resolved(self, num_examples: int, precision: str, num_dev: int = 0) -> "FinetuneTraining":
        """Returns a copy with a value for every default.

        Args:
            num_examples: Rows of the training examples.
            precision: Of the precision "auto".
            num_dev: Rows of the development examples.
        """
        steps, together = self.steps, self.steps_per_execution
        if steps is None:
            steps = math.ceil((self.epochs or USUAL_EPOCHS) * num_examples / self.batch_size)
            if self.epochs is None:
                steps = max(steps, LEAST_STEPS)
            steps = -(-steps // together) * together

        def interval(times):
            return -(-steps // (times * together)) * together

        # In training a row takes three times as long.
        affordable = 3 * steps * self.batch_size // max(num_dev, 1)
        every = self.evaluate_every or interval(min(max(affordable, 1), _TIMES))
        return self.replace(
            steps=steps,
            epochs=steps * self.batch_size / num_examples,
            evaluate_every=every,
            checkpoint_every=self.checkpoint_every
            or min(interval(_TIMES), -(-every // together) * together),
            precision=precision if self.precision == "auto" else self.precision,
        )


class FinetuneConfig(RunConfig):
    """All settings of a fine-tuning except the pre-trained model.

    The optimizer and the learning rate "auto" are `finetuning_optimizer` and `finetuning_lr` of
    `optimization/config.py`.
    """

    task: TaskConfig
    model: ModelChanges = ModelChanges()
    training: FinetuneTraining = FinetuneTraining()
    optimizer: FinetuneOptimizer = FinetuneOptimizer()

    def seeds_of(self, seeds: int | str | Sequence[int]) -> tuple[int, ...]:
        """Returns the seeds of several trainings.

        Args:
            seeds: The number of trainings, with consecutive seeds from `training.seed`; or the
                seeds themselves. A text, as of the command line, has them between commas.

        Raises:
            InputError: If there are none, or too many for a number, or one is given twice.
        """
        given = seeds
        if isinstance(seeds, str):
            numbers = [int(part) if part.isdigit() else -1 for part in seeds.split(",")]
            seeds = numbers[0] if len(numbers) == 1 else numbers
        if isinstance(seeds, int):
            if seeds > _MOST_TRAININGS:
                raise InputError(
                    f"`seeds` must be at most {_MOST_TRAININGS} trainings. Received: {given}. For "
                    f"one training with the seed {given}, use `seed={given}`."
                )
            seeds = range(self.training.seed, self.training.seed + seeds)
        seeds = tuple(seeds)
        if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
            raise InputError(
                "`seeds` must be a positive number of trainings, or different seeds, none of them "
                f"negative. Received: {given}."
            )
        return seeds

    def resolved(
        self, task: "Task", hidden_size: int, num_examples: int, precision: str, num_dev: int = 0
    ) -> "FinetuneConfig":
        """Returns a copy with a value for every default, see `FinetuneTraining.resolved`."""
        name, lr, is_frozen = self.optimizer.name, self.optimizer.lr, self.model.freeze_encoder
        if name == "auto":
            name = finetuning_optimizer(hidden_size, is_frozen)
        if lr == "auto":
            lr = finetuning_lr(name, hidden_size, is_frozen)
        return self.replace(
            task=self.task.replace(labels=task.labels, max_seq_length=task.max_seq_length),
            training=self.training.resolved(num_examples, precision, num_dev),
            optimizer=self.optimizer.with_values(name, lr),
        )
