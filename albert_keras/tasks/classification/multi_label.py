"""Classification with any number of labels for each text or pair, from a user's own tables."""

import functools
import itertools
from typing import NamedTuple

import numpy as np
import scipy.special

from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.kinds import MULTI_LABEL
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.tables.cells import listed_labels, marked_labels
from albert_keras.tasks.task import Error, one_line, with_dropped_tokens

#: A label applies from this probability on, unless a threshold was set or fitted.
THRESHOLD = 0.5
#: Examples with a label from which the threshold of this label is fitted on its own.
_LEAST_EXAMPLES = 5
_NO_LABEL = "(none)"


class LabelsAnswer(NamedTuple):
    """The labels that apply, and the probability of each label by its name."""

    id: str
    labels: tuple[str, ...]
    probabilities: dict[str, float]
    dropped_tokens: int = 0  # tokens of the input that the model did not read


def fitted_thresholds(truth: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Returns the threshold of each label with the highest F1 on labelled examples.

    A label with fewer than five examples takes the threshold with the highest F1 over all labels
    together, as its own would follow single examples.

    Args:
        truth: int [N, C]. 1 if a label applies.
        probabilities: float [N, C].

    Returns:
        float64 [C]. `THRESHOLD` if no label applies to any example.

    Source:
        The "SCut" of Yang 2001, "A study of thresholding strategies for text categorization".
    """
    common = _best_threshold(truth.ravel(), probabilities.ravel())
    return np.array(
        [
            _best_threshold(truth[:, label], probabilities[:, label])
            if truth[:, label].sum() >= _LEAST_EXAMPLES
            else common
            for label in range(truth.shape[1])
        ]
    )


def _best_threshold(truth, probabilities):
    """Returns the threshold with the highest F1, in the middle between two probabilities."""
    if not truth.any():
        return THRESHOLD
    order = np.argsort(-probabilities, kind="stable")
    found, values = np.cumsum(truth[order]), probabilities[order]
    counts = np.arange(1, len(values) + 1)
    scores = 2 * found / (counts + truth.sum())
    # Equal probabilities are on the same side of a threshold.
    scores[:-1][values[:-1] == values[1:]] = -1
    best = int(np.argmax(scores))
    return float((values[best] + values[best + 1]) / 2 if best + 1 < len(values) else values[best])


class MultiLabelTask(TextTask):
    """Any of several labels: columns of 0 and 1, or names in one column between separators.

    An example's label is a tuple of names.
    """

    kind = MULTI_LABEL
    usual_metrics = ("micro_f1",)
    _activation = staticmethod(scipy.special.expit)

    def with_truth(self, example, truth):
        names = (truth,) if isinstance(truth, str) else truth
        if not all(isinstance(name, str) for name in names):  # zeros and ones
            names = marked_labels(self._one_for_each(truth), self.labels, self.labels)
        self._numbers([names])  # raises for an unknown one
        return example._replace(label=tuple(sorted(names, key=self.labels.index)))

    def tuned_answers(self, examples, features, outputs):
        """Fits the threshold of each label, unless `threshold` is set; see `fitted_thresholds`.

        Each half of the examples is answered with the thresholds that were fitted to the other, so
        that the scores are those of examples that the thresholds were not fitted to. The thresholds
        that are returned were fitted to all examples.
        """
        if self.config.threshold is not None or not examples:
            return self.answers(examples, features, outputs), {}
        truth, probabilities = self._truth(examples), self._values(examples, outputs)
        fitted = fitted_thresholds(truth, probabilities)
        thresholds = np.tile(fitted, (len(examples), 1))
        for half in (slice(0, None, 2), slice(1, None, 2)) if len(examples) > 1 else ():
            other = slice(1 - half.start, None, 2)
            thresholds[half] = fitted_thresholds(truth[other], probabilities[other])
        answers = self._applied(examples, probabilities, thresholds)
        tuned = dict(zip(self.labels, fitted.tolist(), strict=True))
        return with_dropped_tokens(answers, features), tuned

    def read_out(self, examples, values, tuned=None):
        """As in `TextTask`; `tuned` has the threshold of each label."""
        return self._applied(examples, values, self.thresholds(tuned))

    def _applied(self, examples, probabilities, thresholds):
        """Answers with the labels whose probability reaches its threshold."""
        rows, applies = probabilities.tolist(), (probabilities >= thresholds).tolist()
        return [
            LabelsAnswer(
                example.id, tuple(itertools.compress(self.labels, given)), self._by_label(row)
            )
            for example, row, given in zip(examples, rows, applies, strict=True)
        ]

    def thresholds(self, tuned: dict[str, float] | None = None) -> np.ndarray:
        """Returns the probability from which each label applies, float64 [C]."""
        default = THRESHOLD if self.config.threshold is None else self.config.threshold
        return np.array([(tuned or {}).get(label, default) for label in self.labels])

    def _scores_of(self, truth, given, names=None):
        of_labels = _f1(truth, given, axis=0)
        scores = {
            "micro_f1": float(_f1(truth, given, axis=None)),
            "macro_f1": float(of_labels.mean()),
            "exact_match": float((truth == given).all(axis=1).mean()),
        }
        return scores | {
            f"f1_{name}": value for name, value in zip(self.labels, of_labels.tolist(), strict=True)
        }

    def guesses(self, training_examples, examples):
        proportions = self._truth(training_examples).mean(axis=0)
        return self._applied(examples, np.tile(proportions, (len(examples), 1)), THRESHOLD)

    def shown(self, answer):
        return f"`{_names(answer.labels)}`"

    def error(self, example, answer):
        wrong = set(example.label) ^ set(answer.labels)
        if not wrong:
            return None
        text = one_line(example.first, example.second)
        # How sure the model is of its worst mistake, a label too many or one too few.
        confidence = max(
            value if name in answer.labels else 1 - value
            for name, value in answer.probabilities.items()
            if name in wrong
        )
        return Error(example.id, text, _names(example.label), _names(answer.labels), confidence)

    def label_kind(self, known_labels):
        if isinstance(self.config.label, tuple):
            return functools.partial(marked_labels, names=self.labels)
        separator = self.config.label_separator or "|"
        return functools.partial(listed_labels, separator=separator, known=known_labels or ())

    def _numbers(self, values):
        """Returns whether each label applies: int64 [N, C]."""
        found = np.zeros((len(values), self.num_outputs), np.int64)
        rows = np.repeat(np.arange(len(values)), [len(names) for names in values])
        columns = label_numbers((name for names in values for name in names), self.labels)
        found[rows, columns] = 1
        return found


def _names(labels):
    return ", ".join(labels) or _NO_LABEL


def _f1(truth, given, axis):
    """Returns F1 along an axis of int [N, C]; 0 where no label applies or is given."""
    both = (truth & given).sum(axis=axis)
    either = truth.sum(axis=axis) + given.sum(axis=axis)
    return 2 * both / np.maximum(either, 1)
