"""The baselines of a training for similarity."""

import logging

import numpy as np
import tensorflow as tf
from sklearn.feature_extraction.text import TfidfVectorizer

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.tasks.classification.regression import score_answers
from albert_keras.tasks.examples import TextExample
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
    texts = [text for one in data.train.examples for text in (one.first, one.second) if text]
    found = {"mean vector before training": {}, "TF-IDF cosine": {}}
    for split, (examples, features) in data.dev.items():
        before = task.answers(examples, features, predictor.predict(features))
        words = score_answers(examples, tfidf_cosines(texts, examples))
        for name, answers in zip(found, (before, words), strict=True):
            found[name][split] = task.scores(examples, answers)
    for name, scores in found.items():
        first = next(iter(scores))
        logger.info("%s: %s %.3f", name, task.metric, scores[first][task.metric])
    return found


def tfidf_cosines(texts: list[str], examples: list[TextExample]) -> np.ndarray:
    """Returns the cosine of the TF-IDF vectors of each pair of texts, float64 [N], 0 to 1.

    A word is what scikit-learn takes by default: two or more letters or digits, in lower case.

    Args:
        texts: Texts from which words and their frequencies are taken, usually of the training.
        examples: Pairs. A pair without any word of `texts` has the cosine 0.
    """
    words = TfidfVectorizer()
    try:
        words.fit(texts)
    except ValueError:  # there is no word in any text
        return np.zeros(len(examples))
    first = words.transform([example.first for example in examples])
    second = words.transform([example.second for example in examples])
    return np.asarray(first.multiply(second).sum(axis=1), np.float64)[:, 0]
