"""The baselines of a training for similarity."""

import logging

import tensorflow as tf

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.task_data import TaskData

logger = logging.getLogger(__name__)


def similarity_baselines(
    strategy: tf.distribute.Strategy, data: TaskData, initial_weights: OpenedModel
) -> dict[str, dict[str, dict[str, float]]]:
    """Scores what a trained model for similarity must surpass, by name and split.

    They are the same encoder before the training, whose vector of a text is the mean over its
    tokens, and the cosine of TF-IDF vectors, with words and frequencies of the training texts.
    """
    task, training = data.task, data.config.training
    with strategy.scope():
        model = task.kind.build_model(data.albert_config, 1, dtype=training.precision)
        initial_weights.load(model)
    predictor = RowPredictor(strategy, model, task.kind, training.eval_batch_size)
    found = {"mean vector before training": {}, "TF-IDF cosine": {}}
    for split, (examples, features) in data.dev.items():
        before = task.answers(examples, features, [predictor.predict(features)])
        words = task.tfidf_answers(data.train.examples, examples)
        for name, answers in zip(found, (before, words), strict=True):
            found[name][split] = task.scores(examples, answers)
    for name, scores in found.items():
        first = next(iter(scores))
        logger.info("%s: %s %.3f", name, task.metric, scores[first][task.metric])
    return found
