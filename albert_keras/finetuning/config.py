"""Configuration of a fine-tuning: task, what changes in the model, training and optimizer."""

import math
from typing import ClassVar, Literal

from pydantic import Field

from albert_keras.optimization.config import OptimizerConfig
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.loop.flagged_config import FlaggedConfig
from albert_keras.training.loop.loop_config import LoopConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import Settings

#: Passes over the training examples if nobody says how long.
USUAL_EPOCHS = 3.0
#: Scores on development examples during a run if nobody says how often.
USUAL_EVALUATIONS = 10


class ModelChanges(Settings):
    """What fine-tuning changes in a pre-trained model, and its head.

    Attributes:
        hidden_dropout_prob, attention_probs_dropout_prob: float or None. Of the encoder; None keeps
            what its configuration says.
        head_dropout: float. Before the last layer.
    """

    hidden_dropout_prob: float | None = Field(None, ge=0, lt=1)
    attention_probs_dropout_prob: float | None = Field(None, ge=0, lt=1)
    head_dropout: float = Field(0.1, ge=0, lt=1)

    def applied(self, albert_config):
        """Returns an AlbertConfig with the changes made."""
        changes = self.model_dump(exclude={"head_dropout"}, exclude_none=True)
        return albert_config.replace(**changes) if changes else albert_config


class FinetuneTraining(LoopConfig):
    """How long and how careful to fine-tune; see `LoopConfig` for the rest.

    Attributes:
        steps: int or None. Optimizer steps; None follows from `epochs`.
        epochs: float or None. Passes over the training examples, if `steps` is not given; None
            is three.
        evaluate_every: int or None. Steps between scores on development examples, of which the
            best is kept; None is a tenth of the run.
        patience: int or None. Such scores without a better one after which training ends.
        checkpoint_every: int or None. Steps between checkpoints to go on from; None is
            `evaluate_every`.
        eval_batch_size: int. Rows a device predicts at a time.
    """

    steps: int | None = Field(None, ge=1)
    epochs: float | None = Field(None, gt=0)
    evaluate_every: int | None = Field(None, ge=1)
    patience: int | None = Field(None, ge=1)
    checkpoint_every: int | None = Field(None, ge=1)
    eval_batch_size: int = Field(64, ge=1)

    def resolved(self, num_examples, precision):
        """Returns a copy in which nothing is left to be decided.

        Args:
            num_examples: int. Rows to learn from.
            precision: str. What "auto" means here.
        """
        steps, together = self.steps, self.steps_per_execution
        if steps is None:
            steps = math.ceil((self.epochs or USUAL_EPOCHS) * num_examples / self.batch_size)
            steps = -(-steps // together) * together
        every = self.evaluate_every or -(-steps // (USUAL_EVALUATIONS * together)) * together
        return self.replace(
            steps=steps,
            epochs=steps * self.batch_size / num_examples,
            evaluate_every=every,
            checkpoint_every=self.checkpoint_every or -(-every // together) * together,
            precision=precision if self.precision == "auto" else self.precision,
        )


class FinetuneOptimizer(OptimizerConfig):
    """As in pre-training, but AdamW, and a tenth of the run to warm up if nobody says how long."""

    name: Literal["lamb", "adamw"] = "adamw"

    def warmup_for(self, num_steps):
        if self.warmup_steps is None:
            return num_steps // 10
        if self.warmup_steps > num_steps:
            raise InputError(
                f"`optimizer.warmup_steps` should not exceed the {num_steps} step(s) of the run. "
                f"Received: {self.warmup_steps}, perhaps of a recipe for a longer one. "
                "--set optimizer.warmup_steps=null takes a tenth of the run."
            )
        return self.warmup_steps


def usual_lr(hidden_size):
    """Returns the peak learning rate of AdamW for a model's hidden size (float).

    2e-5 from the base size on, as in the paper's table 14 (1e-5 to 5e-5). Small models take, and
    want, more: 3e-4 at a hidden size of 128, where on SST-2 1e-4 learns too little in an epoch and
    1e-3 no more; never above 1e-3, from where on the smallest forget what they have learnt.
    """
    return min(2e-5 * max(1.0, (768 / hidden_size) ** 1.5), 1e-3)


#: Words of the command line and of `finetune` -> keys of the configuration.
FLAGS = {
    "task": ("task", "name"),
    "data_dir": ("task", "data_dir"),
    "train": ("task", "train"),
    "dev": ("task", "dev"),
    "text": ("task", "text"),
    "pair": ("task", "pair"),
    "label": ("task", "label"),
    "max_seq_length": ("task", "max_seq_length"),
    "steps": ("training", "steps"),
    "epochs": ("training", "epochs"),
    "batch_size": ("training", "batch_size"),
    "seed": ("training", "seed"),
    "strategy": ("training", "strategy"),
    "precision": ("training", "precision"),
    "accumulation_steps": ("training", "accumulation_steps"),
    "recompute": ("training", "recompute"),
    "steps_per_execution": ("training", "steps_per_execution"),
    "evaluate_every": ("training", "evaluate_every"),
    "checkpoint_every": ("training", "checkpoint_every"),
    "patience": ("training", "patience"),
    "time_budget": ("training", "time_budget"),
    "lr": ("optimizer", "lr"),
}


class FinetuneConfig(FlaggedConfig):
    """Everything that decides a fine-tuning, but for what it begins from.

    Attributes:
        task: TaskConfig.
        model: ModelChanges.
        training: FinetuneTraining.
        optimizer: FinetuneOptimizer. `lr` "auto" is `usual_lr`.
    """

    flags: ClassVar[dict[str, tuple[str, str]]] = FLAGS

    task: TaskConfig
    model: ModelChanges = ModelChanges()
    training: FinetuneTraining = FinetuneTraining()
    optimizer: FinetuneOptimizer = FinetuneOptimizer()

    @classmethod
    def of(cls, values, **flags):
        # Who says how many epochs does not want the steps of a recipe.
        if flags.get("epochs") is not None and flags.get("steps") is None:
            training = values.get("training")
            if isinstance(training, dict):
                training = {key: value for key, value in training.items() if key != "steps"}
                values = values | {"training": training}
        return super().of(values, **flags)

    @classmethod
    def defaults(cls):
        """Returns what a run has where its record, by an older version, says nothing: dict."""
        return cls(task={"name": "sst-2"}).model_dump(mode="json")

    def resolved(self, task, hidden_size, num_examples, precision):
        """Returns a copy in which nothing is left to be decided.

        Args:
            task: Task. Knows labels and lengths.
            hidden_size: int. Of the model.
            num_examples: int. Rows to learn from.
            precision: str. What "auto" means here.
        """
        lr = usual_lr(hidden_size) if self.optimizer.lr == "auto" else self.optimizer.lr
        return self.replace(
            task=self.task.replace(labels=task.labels, max_seq_length=task.max_seq_length),
            training=self.training.resolved(num_examples, precision),
            optimizer=self.optimizer.replace(lr=lr),
        )
