"""The training step of fine-tuning, and its losses, in float32; cross-entropies are in nats.

The losses are sums, as in `training/losses.py`, so that a caller can add them up over replicas and
accumulated parts before dividing by the count of the whole batch.
"""

from collections.abc import Callable

import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.models.finetuning import build_model
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import (
    CHOICE,
    CLASSIFICATION,
    MULTI_LABEL,
    MULTI_REGRESSION,
    REGRESSION,
    SIMILARITY,
    SPANS,
    SPANS_OR_NONE,
    TAGGING,
    TaskKind,
)
from albert_keras.tasks.task import Task
from albert_keras.training.loop.step import (
    TrainingStep,
    compile_step,
    model_settings,
    step_settings,
)
from albert_keras.training.losses import Sums

#: Divides cosines for similarity, as in SimCSE; CoSENT's scale of 20 is the same.
TEMPERATURE = 0.05
#: In place of a difference that does not count: its exponential is 0.
_NO_PAIR = -1e30


class FinetuningStep(TrainingStep):
    """Trains a model on the answers of a task; further arguments as in `TrainingStep`."""

    def __init__(
        self,
        model: keras.Model,
        kind: TaskKind,
        objectives: dict[str, float] | None = None,
        **kwargs,
    ):
        super().__init__(model, objectives or {"answer": 1.0}, **kwargs)
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
        if self.kind in (REGRESSION, MULTI_REGRESSION, SIMILARITY):  # no answer is simply right
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
    model = build_model(
        task.kind.name,
        albert_config,
        task.num_outputs,
        head_dropout=config.model.head_dropout,
        features=config.model,
        **task.model_settings,
        **model_settings(config.training, skips_padding),
    )
    training_step = step_class(model, task.kind, **step_settings(config))
    compile_step(training_step, config)
    return training_step


def task_counts(kind: TaskKind, features: dict):
    """Returns the count by which the loss of a batch is divided, float32 scalar.

    Args:
        features: "example_weights" float [B], 1 for a real row, 0 for one that fills up the
            batch; for tagging "tag_ids" too, as the count is then of the scored words.
    """
    return tf.reduce_sum(_weights(kind, features))


def task_sums(kind: TaskKind, outputs: dict, features: dict) -> Sums:
    """Sums loss, weights and right answers over a batch.

    Args:
        outputs: The outputs of the model; for spans_or_none always its outputs in training.
        features: The targets of `Features.batch`, and "example_weights" float [B].

    Returns:
        Sums. Each row adds, times its weight,
            classification, choice: the cross-entropy of the class or option; with a classifier
                after every layer the mean over the layers, weighted by the number of the layer;
            regression: the squared error; no answer is counted as right;
            multi_label: the mean of the binary cross-entropies of its labels; right if all are;
            multi_regression: the mean of the squared errors of its labels; none counts as right;
            similarity: see `_similarity`; no answer is counted as right;
            tagging: the cross-entropies of its scored words, each word counting once;
            spans: the mean of the cross-entropies of start and end; right if both are;
            spans_or_none: half the sum of the cross-entropies of start, end (after the right
                start) and "no answer"; right if start and end are.

    Raises:
        ValueError: If labels and outputs differ in their shapes.

    Source:
        google-research/albert, `classifier_utils.py`, `race_utils.py`, `squad_utils.py`.
    """
    losses, is_right = _LOSSES[kind](outputs, features)  # [B], for tagging [B, S]
    weights = _weights(kind, features)
    if not weights.shape.is_compatible_with(losses.shape):
        raise ValueError(
            "There must be one loss for each weight, with labels shaped like the outputs. "
            f"Received: losses {losses.shape}, weights {weights.shape}."
        )
    return Sums(
        loss=tf.reduce_sum(weights * losses),
        weight=tf.reduce_sum(weights),
        correct=tf.reduce_sum(weights * is_right),
    )


def _weights(kind, features):
    weights = tf.cast(features["example_weights"], tf.float32)
    if kind is not TAGGING:
        return weights
    return weights[:, None] * tf.cast(tf.convert_to_tensor(features["tag_ids"]) >= 0, tf.float32)


def _classification(outputs, features):
    losses, is_right = _of_classes(outputs["logits"], features["labels"])
    if "exit_logits" not in outputs:
        return losses, is_right
    # Source: Zhou et al. (2020): BERT loses patience (https://arxiv.org/abs/2006.04152).
    earlier = outputs["exit_logits"]  # [B, L - 1, C]
    last = earlier.shape[1] + 1
    labels = tf.repeat(tf.convert_to_tensor(features["labels"])[:, None], last - 1, axis=1)
    numbers = tf.range(1.0, last)
    weighted = tf.reduce_sum(numbers * _of_classes(earlier, labels)[0], axis=1) + last * losses
    return weighted * 2 / (last * (last + 1)), is_right


def _regression(outputs, features):
    losses = tf.square(_float32(outputs["logits"])[:, 0] - _float32(features["labels"]))
    return losses, tf.zeros_like(losses)


def _multi_label(outputs, features):
    logits, labels = _float32(outputs["logits"]), _float32(features["labels"])
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, logits)
    is_right = tf.reduce_all(tf.equal(logits >= 0, labels > 0), axis=-1)
    return tf.reduce_mean(losses, axis=-1), _float32(is_right)


def _multi_regression(outputs, features):
    logits, labels = _float32(outputs["logits"]), _float32(features["labels"])
    logits.shape.assert_is_compatible_with(labels.shape)
    losses = tf.reduce_mean(tf.square(logits - labels), axis=-1)
    return losses, tf.zeros_like(losses)


def _tagging(outputs, features):
    # Positions that are not scored have weight 0 and receive any valid tag.
    return _of_classes(outputs["logits"], tf.maximum(features["tag_ids"], 0))


def _spans(outputs, features):
    starts, starts_right = _of_classes(outputs["start_logits"], features["start_positions"])
    ends, ends_right = _of_classes(outputs["end_logits"], features["end_positions"])
    return (starts + ends) / 2, starts_right * ends_right


def _spans_or_none(outputs, features):
    # Log-probabilities are logits too, their sum of exponentials being 1.
    logits = {f"{end}_logits": outputs[f"{end}_log_probs"] for end in ("start", "end")}
    losses, is_right = _spans(logits, features)
    is_impossible = _float32(features["is_impossible"])
    null_logits = _float32(outputs["null_logits"])
    null = tf.nn.sigmoid_cross_entropy_with_logits(is_impossible, null_logits)
    return losses + null / 2, is_right


def _similarity(outputs, features):
    """Compares the pairs of a batch, or of a replica's part of it, with each other.

    With scores, the loss is CoSENT (Su, 2022, https://kexue.fm/archives/8847): the logarithm of
    1 + the sum of exp((cos_j - cos_i) / temperature) over all i, j where i has the higher score. It
    needs only the order of the scores. Each row gets the loss of the whole batch.

    Without scores, the loss is the cross-entropy of finding the second text of a pair among the
    second texts of all pairs (Gao et al., 2021, "SimCSE", https://arxiv.org/abs/2104.08821,
    equation 1). If both texts are the same, their vectors differ by dropout.
    """
    first, second = tf.unstack(_float32(outputs["vectors"]), axis=1)  # [B, H] each, of length 1
    is_row = tf.convert_to_tensor(features["example_weights"]) > 0  # the others fill up the batch
    if "labels" not in features:
        logits = tf.matmul(first, second, transpose_b=True) / TEMPERATURE
        logits = tf.where(is_row[None, :], logits, _NO_PAIR)
        losses, _ = _of_classes(logits, tf.range(tf.shape(logits)[0]))
        return losses, tf.zeros_like(losses)
    cosines = tf.reduce_sum(first * second, axis=-1) / TEMPERATURE  # [B]
    labels = _float32(features["labels"])
    differences = cosines[None, :] - cosines[:, None]  # [i, j]
    is_pair = (labels[:, None] > labels[None, :]) & is_row[:, None] & is_row[None, :]
    differences = tf.where(is_pair, differences, _NO_PAIR)
    loss = tf.reduce_logsumexp(tf.pad(tf.reshape(differences, [-1]), [[1, 0]]))
    return tf.zeros_like(cosines) + loss, tf.zeros_like(cosines)


def _of_classes(logits, labels):
    """Compares [..., C] with int [...]; returns cross-entropies and 1 where right, float32."""
    labels, logits = tf.convert_to_tensor(labels), _float32(logits)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    is_right = tf.equal(tf.argmax(logits, -1, labels.dtype), labels)
    return losses, _float32(is_right)


def _float32(tensor):
    return tf.cast(tensor, tf.float32)


_LOSSES = {
    CLASSIFICATION: _classification,
    REGRESSION: _regression,
    CHOICE: _classification,
    TAGGING: _tagging,
    SPANS: _spans,
    SPANS_OR_NONE: _spans_or_none,
    MULTI_LABEL: _multi_label,
    MULTI_REGRESSION: _multi_regression,
    SIMILARITY: _similarity,
}
