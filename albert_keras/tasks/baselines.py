"""The simple baselines of a fine-tuning: what its model must surpass to be worth using.

The bag of words is what can be predicted from counts of words, without a network. Texts become
TF-IDF vectors of their words and pairs of neighbouring words, and a linear model of scikit-learn
reads them: logistic regression for classes and labels, ridge regression for scores. For tags,
logistic regression reads a word, its case, its ending and its neighbours. Time and memory are
bounded by the constants below, and the same examples give the same answers.
"""

import itertools
import random
import unicodedata
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import tensorflow as tf
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.score_dev import score_splits
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_data import TaskData
from data_pipeline.text.corpus_formats import UNSPACED_SCRIPTS

#: Texts and tagged sentences that are trained on at most, for up to 10 labels: a linear model is
#: trained for each label, in about a minute on one core for all. Longer texts are cut.
MAX_TEXTS, _MAX_SENTENCES, _FEW_LABELS = 50_000, 10_000, 10
_MAX_CHARACTERS = 2_000
#: Words are counted by their hash, so that their number is limited.
_HASHES = 1 << 18
_PUNCTUATION = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u206f"
_WORD = rf"[^\s{_PUNCTUATION}{UNSPACED_SCRIPTS}]+|\S"


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
    if _has_word_model(task):
        found[_word_model_name(task)] = word_model_answers(task, train, splits)
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


def _has_word_model(task: Task) -> bool:
    """Returns whether a task predicts classes, labels or scores of texts or pairs, or tags."""
    return task.kind == "tagging" or isinstance(task, TextTask) and task.kind != "similarity"


def _word_model_name(task: Task) -> str:
    """Returns what the linear model of a task is called."""
    is_tagging = task.kind == "tagging"
    return "linear model of words and their neighbours" if is_tagging else "bag of words"


def word_model_answers(task: Task, train: list, splits: dict[str, list]) -> dict[str, list[Any]]:
    """Trains on examples of a task with `_has_word_model`, and answers others, by split.

    Thresholds are fitted on the first split, as for a model.
    """
    train = _selected(task, train)
    model = make_pipeline(*_vectors(task, train), _linear_model(task))
    with warnings.catch_warnings():
        # It need not converge, as the answers hardly change any more; and a label that all
        # examples have, or none, is always answered so.
        warnings.simplefilter("ignore")
        model.fit(train, _truths(task, train))
    answers, fitted = {}, None
    for split, examples in splits.items():
        values = _values(task, model, examples)
        thresholds = task.first_thresholds if fitted is None else fitted
        answers[split] = task.read_out(examples, values, thresholds)
        if fitted is None:
            answers[split], fitted = task.fit_thresholds(examples, answers[split])
    return answers


def _selected(task, examples):
    most = _MAX_SENTENCES if task.kind == "tagging" else MAX_TEXTS
    most = most * _FEW_LABELS // max(task.num_outputs, _FEW_LABELS)
    return random.Random(0).sample(examples, most) if len(examples) > most else examples


def _vectors(task, train):
    """Returns the steps of a pipeline that makes the vectors of texts or words of examples."""
    counts = HashingVectorizer(
        token_pattern=_WORD, ngram_range=(1, 2), n_features=_HASHES, alternate_sign=False, norm=None
    )
    if task.kind == "tagging":
        return [FunctionTransformer(_word_features), counts.set_params(analyzer=list)]
    words = make_pipeline(counts, TfidfTransformer(sublinear_tf=True))
    if not task.takes_pair:
        return [FunctionTransformer(_first_texts), words]
    words.fit(_first_texts(train) + _second_texts(train))
    return [FunctionTransformer(lambda pairs: _pair_vectors(words, pairs))]


def _pair_vectors(words, pairs):
    """Returns what is in either text, what both share, in what they differ, and their cosine."""
    first, second = words.transform(_first_texts(pairs)), words.transform(_second_texts(pairs))
    shared = first.multiply(second)
    cosine = scipy.sparse.csr_matrix(shared.sum(axis=1))
    return scipy.sparse.hstack(
        [first, second, shared.sqrt(), abs(first - second), cosine], format="csr"
    )


def _first_texts(examples: list[TextExample]) -> list[str]:
    return [example.first[:_MAX_CHARACTERS] for example in examples]


def _second_texts(examples: list[TextExample]) -> list[str]:
    return [(example.second or "")[:_MAX_CHARACTERS] for example in examples]


def _word_features(sentences) -> Iterator[list[str]]:
    """Yields what is known of each word: itself, its case, its ending and its neighbours.

    The case is the categories of its characters, `Lu Ll` for Paris, `Lu Pd Nd` for B-52.
    """
    for sentence in sentences:
        around = ["", *map(str.lower, sentence.words), ""]
        places = zip(sentence.words, around, around[1:], around[2:], strict=False)
        for word, before, own, after in places:
            kinds = (unicodedata.category(letter) for letter in word[:_MAX_CHARACTERS])
            case = " ".join(kind for kind, _ in itertools.groupby(kinds))
            yield [f"own {own}", f"case {case}", f"end {own[-3:]}", f"-1 {before}", f"+1 {after}"]


def _linear_model(task):
    if task.kind in ("regression", "multi_regression"):
        return Ridge(1.0, solver="sparse_cg")
    # Regularization is weak, as most words occur in a few texts only. On 4,000 rows of SST-2 the
    # accuracy is 0.76 with C=1, and 0.78 with 3, 10 and 20.
    return OneVsRestClassifier(
        LogisticRegression(C=10, solver="liblinear", dual=True, random_state=0, max_iter=10)
    )


def _truths(task, examples):
    """Returns scores, or zeros and ones of each label of texts or words: [rows, labels]."""
    if task.kind in ("regression", "multi_regression"):
        return np.array([example.label for example in examples])
    if task.kind == "tagging":
        labels = [(tag,) for example in examples for tag in example.tags]
    elif task.kind == "multi_label":
        labels = [example.label for example in examples]
    else:
        labels = [(example.label,) for example in examples]
    return MultiLabelBinarizer(classes=task.labels).fit_transform(labels)


def _values(task, model, examples):
    """Returns probabilities or scores, as of the model of the task, float64 [rows, outputs]."""
    if task.kind in ("regression", "multi_regression"):
        return model.predict(examples).reshape(-1, task.num_outputs)
    # Of each label against all others; a single label has a column for "no" before it.
    found = np.clip(model.predict_proba(examples)[:, -len(task.labels) :], 1e-9, 1 - 1e-9)
    return found if task.kind == "multi_label" else found / found.sum(axis=1, keepdims=True)
