"""The training step of fine-tuning: it learns the answers of a task."""

from albert_keras.finetuning.losses import task_counts, task_sums
from albert_keras.models.finetuning import build_model
from albert_keras.tasks.kinds import REGRESSION
from albert_keras.training.loop.step import (
    TrainingStep,
    compile_step,
    model_settings,
    step_settings,
)


class FinetuningStep(TrainingStep):
    """Trains a model on the answers of a task.

    Args:
        model: keras.Model. As returned by `build_model`.
        kind: TaskKind.
        **kwargs: As in `TrainingStep`.
    """

    def __init__(self, model, kind, **kwargs):
        super().__init__(model, {"answer": 1.0}, **kwargs)
        self.kind = kind

    @property
    def trained_weights(self):
        return self.model.trained_weights

    def counts(self, features):
        return [task_counts(self.kind, features)]

    def sums(self, features, training, dropout_seed=None):
        outputs = self.model(features, training=training, dropout_seed=dropout_seed)
        return [task_sums(self.kind, outputs, features)]

    def _results(self):
        results = super()._results()
        if self.kind is REGRESSION:  # where no answer is simply right
            del results["answer_accuracy"]
        return results


def build_step(config, albert_config, task, skips_padding=False):
    """Builds the compiled FinetuningStep of a configuration; to be called in a strategy's scope.

    Args:
        config: FinetuneConfig, resolved.
        albert_config: AlbertConfig.
        task: Task.
        skips_padding: bool. See `AlbertEncoder`.

    Returns:
        FinetuningStep. All weights, which are random, and moments exist.
    """
    model = build_model(
        task.kind.name,
        albert_config,
        task.num_outputs,
        head_dropout=config.model.head_dropout,
        **model_settings(config.training, skips_padding),
    )
    training_step = FinetuningStep(model, task.kind, **step_settings(config))
    compile_step(training_step, config)
    return training_step
