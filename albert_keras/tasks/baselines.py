"""The simple baselines of a fine-tuning: what its model must surpass to be worth using."""

import numpy as np
import tensorflow as tf
from sklearn.feature_extraction.text import TfidfVectorizer

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.score_dev import score_splits
from albert_keras.tasks.task_data import TaskData
from albert_keras.tasks.word_model import has_word_model, word_model_answers, word_model_name
from data_pipeline.progress import doing


def baseline_answers(
    strategy: tf.distribute.Strategy, data: TaskData, initial_weights: OpenedModel
) -> dict[str, dict[str, list]]:
    """Answers the development examples with each baseline of a task, by name and split.

    They are the most frequent answer and the bag of words. For similarity they are the same encoder
    before the training, whose vector of a text is the mean over its tokens, and the cosine of
    TF-IDF vectors, with words and frequencies of the training texts.
    """
    task, splits = data.task, {split: dev.examples for split, dev in data.dev.items()}
    train, found = data.train.examples, {}
    guesses = {split: task.guesses(train, examples) for split, examples in splits.items()}
    if None not in guesses.values():
        is_score = task.kind in ("regression", "multi_regression")
        found["mean of the training scores" if is_score else "most frequent answer"] = guesses
    if has_word_model(task):
        with doing("training the bag of words"):
            found[word_model_name(task)] = word_model_answers(task, train, splits)
    if task.kind == "similarity":
        texts = [text for one in train for text in (one.first, one.second) if text]
        found["mean vector before training"] = _answers_before(strategy, data, initial_weights)
        found["TF-IDF cosine"] = {
            split: task.read_out(examples, tfidf_cosines(texts, examples)[:, None])
            for split, examples in splits.items()
        }
    return found


def _answers_before(strategy, data, initial_weights):
    training = data.config.training
    with strategy.scope():
        model = data.task.build_model(
            data.albert_config, data.tokenizer, dtype=training.precision, pooling="mean"
        )
        initial_weights.load(model)
        predictor = RowPredictor.of_model(model, training.eval_batch_size)
    return score_splits(data.task, data.dev, model, predictor).answers


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
