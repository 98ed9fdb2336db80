"""The training step of fine-tuning."""

from collections.abc import Callable

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_model import AlbertTaskModel
from albert_keras.training.loop.step import (
    TrainingStep,
    compile_step,
    model_settings,
    step_settings,
)


class FinetuningStep(TrainingStep):
    """Trains a model on the answers of a task; further arguments as in `TrainingStep`."""

    def __init__(
        self,
        model: AlbertTaskModel,
        objectives: dict[str, float] | None = None,
        **kwargs,
    ):
        super().__init__(model, objectives or {"answer": 1.0}, **kwargs)

    @property
    def trained_weights(self):
        return self.model.trained_weights

    def counts(self, features):
        return [tf.reduce_sum(self.model.weights_of(features))]

    def sums(self, features, training, dropout_seed=None):
        outputs = self.model(features, training=training, dropout_seed=dropout_seed)
        return [self.model.sums(outputs, features)]

    def _results(self):
        results = super()._results()
        if not self.model.has_accuracy:
            del results["answer_accuracy"]
        return results


def build_step(
    config: FinetuneConfig,
    albert_config: AlbertConfig,
    task: Task,
    skips_padding: bool = False,
    step_class: Callable[..., FinetuningStep] = FinetuningStep,
) -> FinetuningStep:
    """Builds the compiled step of a resolved configuration; to be called in a strategy's scope.

    All weights, which are random, and moments exist. `skips_padding` as in `AlbertEncoder`;
    `step_class` takes the arguments of FinetuningStep.
    """
    model = task.build_model(
        albert_config,
        head_dropout=config.model.head_dropout,
        features=config.model,
        **model_settings(config.training, skips_padding),
    )
    training_step = step_class(model, **step_settings(config))
    compile_step(training_step, config)
    return training_step
