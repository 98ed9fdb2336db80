"""The baselines of a fine-tuning: what can be predicted from counts of words, without a network.

For classes and scores, texts become TF-IDF vectors of their words and pairs of neighbouring words,
and a linear model is trained on them: logistic regression for classes, ridge regression for scores.
A fine-tuned model that does no better has learned nothing beyond which words occur. For similarity,
the cosine of such vectors is compared, and the encoder before the training.

Time and memory are bounded by the constants below, and the same examples give the same answers.
"""

import logging
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse
import scipy.special
import tensorflow as tf
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.similarity import AlbertForSimilarity
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.results import BagOfWords
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.score_dev import score_splits
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_data import TaskData
from data_pipeline.progress import doing
from data_pipeline.randomness import key_of, permute
from data_pipeline.text.letters import UNSPACED_SCRIPTS

#: The most examples that are trained on, for up to 10 classes, and the most characters of a text.
#: Training takes about a minute on one core. A linear model is trained for each class.
MAX_EXAMPLES, _FEW_CLASSES, _MAX_TEXT = 50_000, 10, 2_000
#: Terms are counted by their hash. Limits of a linear model: columns, and weights of all classes.
_MAX_HASHES, _MAX_WEIGHTS = 1 << 18, 1 << 23
#: Regularization is weak, as most terms occur in a few texts only. On 4,000 rows of SST-2 the
#: accuracy is 0.76 with an inverse strength of 1, and 0.78 with 3, 10 and 20.
_INVERSE_STRENGTH, _RIDGE_STRENGTH = 10.0, 1.0
_MAX_ITERATIONS, _LEAST_PROBABILITY = 100, 1e-9
_PUNCTUATION = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u206f"
_TERM = rf"[^\s{_PUNCTUATION}{UNSPACED_SCRIPTS}]+|\S"

logger = logging.getLogger(__name__)


def has_bag_of_words(task: Task) -> bool:
    """Returns whether a task predicts classes, labels or scores of a text or a pair of texts."""
    return isinstance(task, TextTask) and task.texts_per_row == 1


def bag_of_words_answers(
    task: Task, training_examples: list, splits: dict[str, list]
) -> dict[str, list]:
    """Trains the baseline of a task that has one, and answers other examples.

    A pair of texts is represented by the terms of either text, the terms they share, the terms
    in which they differ, and three measures of how similar they are.

    Args:
        training_examples: Labelled TextExamples; see `selected`.
        splits: The labelled examples to answer, by the name of their split.

    Returns:
        The answers by split, see `Task.answers`.
    """
    examples = selected(training_examples, task.num_outputs)
    labels = [example.label for example in examples]
    if task.kind == "classification" and len(set(labels)) < 2:
        return {name: task.guesses(training_examples, given) for name, given in splits.items()}
    texts = _Texts(task.takes_pair, task.num_outputs, examples)
    predict = _trained(task, texts.rows(examples), labels)
    answers = {}
    for name, given in splits.items():
        logits = predict(texts.rows(given)).reshape(len(given), task.num_outputs)
        answers[name], _ = task.tuned_answers(given, None, {"logits": logits})
    return answers


def train_bag_of_words(
    task: Task, training_examples: list, splits: dict[str, list]
) -> BagOfWords | None:
    """Trains and scores the baseline; the arguments are those of `bag_of_words_answers`.

    It is None unless `has_bag_of_words`.
    """
    if not has_bag_of_words(task):
        return None
    started, first = time.monotonic(), next(iter(splits))
    count = len(selected(training_examples, task.num_outputs))
    with doing(f"training the bag of words on {count:,} examples, {task.num_outputs} outputs"):
        answers = bag_of_words_answers(task, training_examples, splits)
    return BagOfWords(
        scores={split: task.scores(given, answers[split]) for split, given in splits.items()},
        interval=task.interval(splits[first], answers[first]),
        examples=count,
        seconds=round(time.monotonic() - started, 1),
    )


def _trained(task, rows, labels) -> Callable:
    """Trains a linear model; returns a function from rows to what the model of a task computes."""
    if task.kind in ("regression", "multi_regression"):
        return Ridge(_RIDGE_STRENGTH, solver="sparse_cg").fit(rows, np.array(labels)).predict
    model = LogisticRegression(
        C=_INVERSE_STRENGTH, solver="liblinear", dual=True, random_state=0, max_iter=_MAX_ITERATIONS
    )
    if task.kind == "multi_label":
        labels = MultiLabelBinarizer(classes=task.labels).fit_transform(labels)
    if task.kind == "multi_label" or task.num_outputs > 2:
        model = OneVsRestClassifier(model)
    with warnings.catch_warnings():
        # The answers hardly change any more; a label may apply to no example, or to all.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Label .* is present in all training examples")
        model.fit(rows, labels)
    if task.kind == "multi_label":
        return lambda rows: scipy.special.logit(_inside(model.predict_proba(rows)))
    columns = [task.labels.index(label) for label in model.classes_]

    def log_probabilities(rows):
        probabilities = np.zeros((rows.shape[0], task.num_outputs))
        probabilities[:, columns] = model.predict_proba(rows)
        return np.log(_inside(probabilities))

    return log_probabilities


def _inside(probabilities):
    """Returns probabilities whose logits are finite."""
    return np.clip(probabilities, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)


def selected(examples: list[TextExample], num_outputs: int = 1) -> list[TextExample]:
    """Returns the examples that the baseline is trained on: all, or a fixed selection of them."""
    most = MAX_EXAMPLES * _FEW_CLASSES // max(num_outputs, _FEW_CLASSES)
    if len(examples) <= most:
        return examples
    order = permute(np.arange(len(examples)), len(examples), key_of("bag of words"))
    return [examples[number] for number in np.sort(order[:most])]


class _Texts:
    """Converts examples to rows of a sparse matrix, float64 [N, columns].

    The weights of terms are those of `examples`.
    """

    def __init__(self, takes_pair: bool, num_classes: int, examples: Sequence[TextExample]):
        self._takes_pair = takes_pair
        self._hashing = HashingVectorizer(
            token_pattern=_TERM,
            ngram_range=(1, 2),
            n_features=min(_MAX_HASHES, _MAX_WEIGHTS // (num_classes * (4 if takes_pair else 1))),
            alternate_sign=False,
            norm=None,
        )
        self._weighting = TfidfTransformer(sublinear_tf=True)
        self._weighting.fit(scipy.sparse.vstack(self._counts(examples)))

    def rows(self, examples: Sequence[TextExample]) -> scipy.sparse.csr_matrix:
        """Returns the vectors of texts; of pairs also what their texts have in common."""
        columns = [self._weighting.transform(one) for one in self._counts(examples)]
        if self._takes_pair:
            first, second = columns
            columns += [first.multiply(second).sqrt(), abs(first - second)]
            columns.append(_similarities(first, second))
        return scipy.sparse.hstack(columns, format="csr")

    def _counts(self, examples):
        """Counts all terms of texts, or of the first and of the second texts of pairs."""
        texts = [[example.first for example in examples]]
        if self._takes_pair:
            texts.append([example.second or "" for example in examples])
        return [self._hashing.transform(text[:_MAX_TEXT] for text in one) for one in texts]


def _similarities(first, second):
    """Returns cosine, proportion of shared terms, and ratio of lengths: float64 [N, 3]."""
    cosine = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    sizes = [np.diff(one.indptr) for one in (first, second)]
    shared = np.diff(first.multiply(second).tocsr().indptr)
    union = np.maximum(sizes[0] + sizes[1] - shared, 1)
    ratio = np.minimum(*sizes) / np.maximum(np.maximum(*sizes), 1)
    return scipy.sparse.csr_matrix(np.stack([cosine, shared / union, ratio], axis=1))


def similarity_baselines(
    strategy: tf.distribute.Strategy, data: TaskData, initial_weights: OpenedModel
) -> dict[str, dict[str, dict[str, float]]]:
    """Scores what a trained model for similarity must surpass, by name and split.

    They are the same encoder before the training, whose vector of a text is the mean over its
    tokens, and the cosine of TF-IDF vectors, with words and frequencies of the training texts.
    """
    task, training = data.task, data.config.training
    with strategy.scope():
        model = AlbertForSimilarity(data.albert_config, dtype=training.precision)
        initial_weights.load(model)
    predictor = RowPredictor(
        strategy, model.outputs_of, training.eval_batch_size, config=model.config
    )
    texts = [text for one in data.train.examples for text in (one.first, one.second) if text]
    words = {}
    for split, (examples, _) in data.dev.items():
        answers = task.read_out(examples, tfidf_cosines(texts, examples)[:, None])
        words[split] = task.scores(examples, answers)
    before = score_splits(task, data.dev, predictor.predict).scores
    found = {"mean vector before training": before, "TF-IDF cosine": words}
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
