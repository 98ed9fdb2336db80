"""The bag of words: what can be predicted from counts of words, without a network.

Texts become TF-IDF vectors of their words and pairs of neighbouring words, and a linear model is
trained on them: logistic regression for classes, ridge regression for scores. For tagging, logistic
regression reads a word, its case and its neighbours. A fine-tuned model that does no better has
learned nothing beyond which words occur.

Time and memory are bounded by the constants below, and the same examples give the same answers.
"""

import itertools
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import scipy.special
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MultiLabelBinarizer

from albert_keras.runs.run import Run
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.finetuned import task_of
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.task import Task
from data_pipeline.array_files import read_arrays, write_arrays
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.randomness import key_of, permute
from data_pipeline.text.letters import UNSPACED_SCRIPTS

_FILE = "bag_of_words.npz"
#: The most examples that are trained on, or words with tags, for up to 10 classes, and the most
#: characters of a text. Training takes about a minute on one core. A linear model is trained for
#: each class.
MAX_EXAMPLES, _MAX_WORDS, _FEW_CLASSES, _MAX_TEXT = 50_000, 200_000, 10, 2_000
#: Terms are counted by their hash. Limits of a linear model: columns, and weights of all classes.
_MAX_HASHES, _MAX_WEIGHTS = 1 << 18, 1 << 23
#: Regularization is weak, as most terms occur in a few texts only. On 4,000 rows of SST-2 the
#: accuracy is 0.76 with an inverse strength of 1, and 0.78 with 3, 10 and 20.
_INVERSE_STRENGTH, _RIDGE_STRENGTH = 10.0, 1.0
#: The logit of a label that all training examples have; with another sign, of one that none has.
_MAX_ITERATIONS, _CERTAIN = 10, 20.0
_PUNCTUATION = r"!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u206f"
_TERM = rf"[^\s{_PUNCTUATION}{UNSPACED_SCRIPTS}]+|\S"


def has_word_model(task: Task) -> bool:
    """Returns whether a task predicts classes, labels or scores of texts or pairs, or tags."""
    return task.kind == "tagging" or isinstance(task, TextTask) and task.texts_per_row == 1


class WordModel:
    """A linear model of a task with `has_word_model`; see `train` and `open`.

    A pair of texts is represented by the terms of either text, the terms they share, the terms
    in which they differ, and three measures of how similar they are.

    Args:
        task: Task.
        idf: float32 [terms]. Weights of the terms of texts.
        weights, biases: sparse float32 [C, columns] and float32 [C], of C outputs.
        tuned: As of `Task.tuned_answers`.
    """

    def __init__(self, task: Task, idf, weights, biases, tuned: dict[str, float] | None = None):
        self.task, self.tuned = task, tuned
        self._idf, self._weights, self._biases = idf, weights, biases

    @classmethod
    def train(cls, task: Task, examples: list) -> "WordModel":
        """Trains on the labelled examples, of which `selected` ones are used."""
        examples = selected(task, examples)
        parts = 4 if task.takes_pair else 1
        idf = np.ones(min(_MAX_HASHES, _MAX_WEIGHTS // (task.num_outputs * parts)), np.float32)
        if task.kind != "tagging":
            counts = scipy.sparse.vstack(_counts(task, examples, len(idf)))
            idf = TfidfTransformer(sublinear_tf=True).fit(counts).idf_.astype(np.float32)
        weights, biases = _trained(task, _rows(task, examples, idf), examples)
        sparse = scipy.sparse.csr_matrix(np.atleast_2d(weights).astype(np.float32))
        return cls(task, idf, sparse, np.atleast_1d(biases).astype(np.float32))

    @classmethod
    def open(cls, run: Run) -> "WordModel":
        """Opens the model of the fine-tuning of a run; InputError if it has none, or is damaged."""
        path, config = run.path.parent / _FILE, task_of(run).config
        task = build_task(config.replace(train=None, dev=None, data_dir=None))
        try:
            arrays = read_arrays(path)
            idf, *sparse, biases, thresholds = (arrays[name] for name in _ARRAYS)
            columns = 4 * len(idf) + 3 if task.takes_pair else len(idf)
            weights = scipy.sparse.csr_matrix(tuple(sparse), (task.num_outputs, columns))
            weights.check_format()
            if biases.shape != (task.num_outputs,) or len(thresholds) not in (0, len(task.labels)):
                raise ValueError("it belongs to other labels")
        except (ValueError, KeyError, TypeError, FileNotFoundError) as error:
            reason = f"is damaged: {error}" if path.is_file() else "does not exist"
            raise InputError(
                f"The bag of words `{path}` {reason}. Repeat the fine-tuning, with `bag_of_words` "
                "and a task for which there is one."
            ) from error
        tuned = dict(zip(task.labels, thresholds.tolist(), strict=False))
        return cls(task, idf, weights, biases, tuned)

    def save(self, folder: Path) -> None:
        """Writes the model into the folder of a fine-tuning."""
        sparse = (self._weights.data, self._weights.indices, self._weights.indptr)
        arrays = (self._idf, *sparse, self._biases, np.array(list((self.tuned or {}).values())))
        with whole_file(folder / _FILE) as temporary:
            write_arrays(temporary, dict(zip(_ARRAYS, arrays, strict=True)))

    def answers(self, examples: list, batch_size: int = 64) -> list[Any]:
        """Answers examples as a TrainedTask does."""
        return self.task.answers(examples, None, self._outputs(examples), self.tuned or None)

    def tuned_answers(self, examples: list) -> list[Any]:
        """Answers labelled examples, and tunes on them what can be tuned."""
        answers, self.tuned = self.task.tuned_answers(examples, None, self._outputs(examples))
        return answers

    def _outputs(self, examples):
        logits = _rows(self.task, examples, self._idf) @ self._weights.T.toarray() + self._biases
        if self.task.kind in ("classification", "tagging"):
            logits = scipy.special.log_expit(logits)  # of one class against all others
        return {"logits": logits}


_ARRAYS = ("idf", "weights", "indices", "row_starts", "biases", "thresholds")


def selected(task: Task, examples: list) -> list:
    """Returns the examples that the model is trained on: all, or a fixed selection of them."""
    sizes = [len(one.words) if isinstance(one, TaggedExample) else 1 for one in examples]
    most = _MAX_WORDS if task.kind == "tagging" else MAX_EXAMPLES
    most = most * _FEW_CLASSES // max(task.num_outputs, _FEW_CLASSES)
    if sum(sizes) <= most:
        return examples
    order = permute(np.arange(len(examples)), len(examples), key_of("bag of words"))
    count = np.searchsorted(np.cumsum(np.take(sizes, order)), most, side="right")
    return [examples[number] for number in np.sort(order[:count])]


def _trained(task, rows, examples):
    """Trains a linear model for each output; returns their weights and biases."""
    if task.kind in ("regression", "multi_regression"):
        scores = np.array([example.label for example in examples])
        model = Ridge(_RIDGE_STRENGTH, solver="sparse_cg").fit(rows, scores)
        return model.coef_, model.intercept_
    if task.kind == "multi_label":
        labels = [example.label for example in examples]
        truth = MultiLabelBinarizer(classes=task.labels).fit_transform(labels)
    else:
        is_tagging = task.kind == "tagging"
        names = [name for one in examples for name in (one.tags if is_tagging else [one.label])]
        truth = np.eye(task.num_outputs, dtype=int)[label_numbers(names, task.labels)]
    of_two = task.kind != "multi_label" and task.num_outputs == 2
    found = [_trained_on(rows, column) for column in truth.T[of_two:]]
    if of_two:
        found.insert(0, [-value for value in found[0]])
    weights, biases = zip(*found, strict=True)
    return np.stack(weights), np.array(biases)


def _trained_on(rows, truth):
    if truth.min() == truth.max():
        return np.zeros(rows.shape[1]), _CERTAIN if truth[0] else -_CERTAIN
    model = LogisticRegression(
        C=_INVERSE_STRENGTH, solver="liblinear", dual=True, random_state=0, max_iter=_MAX_ITERATIONS
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the answers hardly change any more
        model.fit(rows, truth)
    return model.coef_[0], model.intercept_[0]


def _rows(task, examples, idf) -> scipy.sparse.csr_matrix:
    """Returns the vectors of texts or words; of pairs also what their texts have in common."""
    if task.kind == "tagging":
        return _counts(task, examples, len(idf))[0]
    weighting = TfidfTransformer(sublinear_tf=True)
    weighting.idf_ = idf
    columns = [weighting.transform(one) for one in _counts(task, examples, len(idf))]
    if task.takes_pair:
        first, second = columns
        columns += [first.multiply(second).sqrt(), abs(first - second)]
        columns.append(_similarities(first, second))
    return scipy.sparse.hstack(columns, format="csr")


def _counts(task, examples, num_terms):
    """Counts all terms of words, of texts, or of the first and of the second texts of pairs."""
    hashing = HashingVectorizer(
        token_pattern=_TERM,
        ngram_range=(1, 2),
        n_features=num_terms,
        alternate_sign=False,
        norm=None,
    )
    if task.kind == "tagging":
        hashing.analyzer = list  # terms as they are
        return [hashing.transform(terms for one in examples for terms in _terms(one.words))]
    texts = [[example.first for example in examples]]
    if task.takes_pair:
        texts.append([example.second or "" for example in examples])
    return [hashing.transform(text[:_MAX_TEXT] for text in one) for one in texts]


def _terms(words: Sequence[str]) -> Iterator[list[str]]:
    """Yields what is counted of each word of a sentence: itself, its case, ending and neighbours.

    The case is the categories of its characters, `Lu Ll` for Paris, `Lu Pd Nd` for B-52.
    """
    around = ["", *map(str.lower, words), ""]
    for word, before, own, after in zip(words, around, around[1:], around[2:], strict=False):
        kinds = (unicodedata.category(letter) for letter in word[:_MAX_TEXT])
        case = " ".join(kind for kind, _ in itertools.groupby(kinds))
        yield [f"own {own}", f"case {case}", f"end {own[-3:]}", f"-1 {before}", f"+1 {after}"]


def _similarities(first, second):
    """Returns cosine, proportion of shared terms, and ratio of lengths: float64 [N, 3]."""
    cosine = np.asarray(first.multiply(second).sum(axis=1)).ravel()
    sizes = [np.diff(one.indptr) for one in (first, second)]
    shared = np.diff(first.multiply(second).tocsr().indptr)
    union = np.maximum(sizes[0] + sizes[1] - shared, 1)
    ratio = np.minimum(*sizes) / np.maximum(np.maximum(*sizes), 1)
    return scipy.sparse.csr_matrix(np.stack([cosine, shared / union, ratio], axis=1))
