"""What early exit costs and saves: scores and layers at several confidences."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.layers.kernels import inference
from albert_keras.tasks.classification.early_exit import check_confidence
from albert_keras.tasks.finetuned import FinetunedModels
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.trained_rows import check_scored
from data_pipeline.errors import InputError


class ExitPoint(NamedTuple):
    """Early exit at a confidence."""

    confidence: float
    score: float  # the main score of the task
    points_lost: float  # score of all layers minus this one, times 100
    mean_layers: float  # layers that a row takes on average
    exits: tuple[float, ...]  # proportion of the rows that stop after each layer


class EarlyExitCurve(NamedTuple):
    """Result of `evaluate_early_exit`."""

    run: str
    task: str
    split: str
    metric: str
    examples: int
    score: float  # of all layers
    layer_scores: tuple[float, ...]  # if every row stops after this layer
    points: list[ExitPoint]


def evaluate_early_exit(
    run: str | Path,
    confidences: Sequence[float],
    data: str | Path | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    step: int | str | None = "best",
    batch_size: int = 64,
    allow_trained_rows: bool = False,
) -> EarlyExitCurve:
    """Scores a classifier that stops each row at the first confident layer.

    The layers that a row takes are nearly all of its time.

    Args:
        run: A run that was fine-tuned with `exit_heads`, or the folder of its fine-tuning.
        confidences: Probabilities of the most likely class at which a row stops.
        data: Labelled file of the task. None takes the development examples.
        data_dir: Folder of the official files. None takes the folder of the training.
        split: Split of the official files, instead of `data`.
        step: Checkpoint, see `FinetunedModels`.
        batch_size: Rows per call.
        allow_trained_rows: Whether to score examples that were all trained on.

    Returns:
        EarlyExitCurve.

    Raises:
        InputError: If a confidence is not a probability, the model has no classifier after every
            layer, or the examples cannot be used.

    Example:
        evaluate_early_exit("runs/sst-2", [0.8, 0.9]).points[0].mean_layers
    """
    confidences = sorted(set(confidences))
    if not confidences:
        raise InputError("`confidences` must contain at least one probability. Received: none.")
    for confidence in confidences:
        check_confidence(confidence)
    folder = None if data_dir is None else str(data_dir)
    models = FinetunedModels(
        run, step=step, strategy="single", batch_size=batch_size, data_dir=folder
    )
    task, opened = models.task, models.runs[0]
    model = opened.load_model(step, precision="float32", task=task)
    if not getattr(model, "exit_heads", None):
        raise InputError(
            f"`{opened.path}` must have a classifier after every layer. Received: a model without "
            "them. Train it with `albert-keras finetune --exit-heads`."
        )
    if data is not None:
        examples, split = task.read_file(data, labelled=True), Path(data).name
    else:
        split = split or task.dev_splits[0]
        examples = task.read(split)
    check_scored(models.runs, examples, split, allow_trained_rows)
    features = task.features(examples, models.tokenizer)

    def score(logits):
        answers = task.answers(examples, features, [{"logits": logits}], models.tuned or None)
        return float(task.scores(examples, answers)[task.metric])

    def every_layer(inputs, training):
        with inference():
            return {"logits": model.logits_of_layers(inputs, training)}

    strategy = tf.distribute.get_strategy()
    predictor = RowPredictor(strategy, every_layer, task.kind, batch_size, config=model.config)
    logits = predictor.predict(features)["logits"]  # [N, L, C]
    layer_scores = tuple(score(logits[:, layer]) for layer in range(logits.shape[1]))
    points = []
    for confidence in confidences:
        layers = layers_until_confident(logits, confidence)
        found = score(np.take_along_axis(logits, layers[:, None, None] - 1, axis=1)[:, 0])
        lost, mean = 100 * (layer_scores[-1] - found), float(layers.mean())
        exits = tuple(np.bincount(layers - 1, minlength=logits.shape[1]) / len(layers))
        points.append(ExitPoint(confidence, found, lost, mean, exits))
    described = str(run), task.config.name, split, task.metric, len(examples)
    return EarlyExitCurve(*described, layer_scores[-1], layer_scores, points)


def layers_until_confident(logits: np.ndarray, confidence: float) -> np.ndarray:
    """Returns after how many layers each row stops, int64 [N].

    Args:
        logits: float [N, L, C]. What the classifier after each layer answers.
        confidence: As in `classify_until_confident`.
    """
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    is_confident = 1 / shifted.sum(axis=-1) >= confidence  # the largest probability
    is_confident[:, -1] = True
    return is_confident.argmax(axis=1) + 1
