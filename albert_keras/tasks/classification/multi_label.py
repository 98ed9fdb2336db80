"""Classification with any number of labels for each text or pair, from a user's own tables."""

import functools
import itertools

import numpy as np

from albert_keras.models.answers import THRESHOLD, labels_answers
from albert_keras.models.labels import zeros_and_ones
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import row_of
from albert_keras.tasks.labels import label_numbers
from albert_keras.tasks.tables.cells import listed_labels, marked_labels
from albert_keras.tasks.task import Error

#: Examples with a label from which the threshold of this label is fitted on its own.
_LEAST_EXAMPLES = 20
_NO_LABEL = "(none)"


def common_threshold(truth: np.ndarray, probabilities: np.ndarray, metric: str) -> float:
    """Returns the threshold of all labels with the highest score on labelled examples.

    The score is exact match for the metric "exact_match", and micro F1 for all others.

    Args:
        truth: int [N, C]. 1 if a label applies.
        probabilities: float [N, C].

    Returns:
        `THRESHOLD` if no label applies to any example.
    """
    if not truth.any():
        return THRESHOLD
    if metric != "exact_match":
        found, thresholds = _cuts(truth.ravel(), probabilities.ravel())
        scores = 2 * found / (np.arange(len(found)) + truth.sum())
        return float(thresholds[np.argmax(scores)])
    # An example is right above its labels that do not apply, and up to those that do.
    lows = np.where(truth, -np.inf, probabilities).max(axis=1)
    highs = np.where(truth, probabilities, np.inf).min(axis=1)
    lows, highs = np.sort(lows[lows < highs]), np.sort(highs[lows < highs])
    edges = np.unique(np.concatenate([[0.0, 1.0], lows, highs]))
    edges = edges[np.isfinite(edges)]
    thresholds = (edges[1:] + edges[:-1]) / 2
    counts = np.searchsorted(lows, thresholds) - np.searchsorted(highs, thresholds)
    return float(thresholds[np.argmax(counts)])


def own_thresholds(truth: np.ndarray, probabilities: np.ndarray, metric: str) -> np.ndarray:
    """Returns the thresholds of labels with the highest score on labelled examples, float64 [C].

    The score is micro F1 for the metrics "micro_f1" and "exact_match"; for others it is the F1 of
    each label, as the mean over labels is then the highest one. A label with fewer than 20
    examples has the `common_threshold`, as its own would follow single examples. Arguments are as
    there.

    Source:
        "SCut" of Yang 2001, "A study of thresholding strategies for text categorization"; for
        micro F1 the iteration of Dinkelbach 1967, "On nonlinear fractional programming".
    """
    fitted = np.full(truth.shape[1], common_threshold(truth, probabilities, metric))
    totals, is_micro = truth.sum(axis=0), metric in ("micro_f1", "exact_match")
    often = np.flatnonzero(totals >= _LEAST_EXAMPLES)
    cuts = {label: _cuts(truth[:, label], probabilities[:, label]) for label in often}
    score, best = 0.0, -1.0
    while score > best:  # for micro F1 a few times, for that of each label twice
        best, result = score, fitted.copy()
        for label, (found, thresholds) in cuts.items():
            counts = np.arange(len(found))
            gains = 2 * found - best * counts if is_micro else found / (counts + totals[label])
            fitted[label] = thresholds[np.argmax(np.where(found < 0, -np.inf, gains))]
        score = float(_f1(truth, probabilities >= fitted, None if is_micro else 0).mean())
    return result


def _cuts(truth, probabilities):
    """Returns how many of the most probable entries are true, and the threshold that selects them.

    Both are arrays over the number of entries from 0. A threshold is in the middle between two
    probabilities; between equal ones there is none, and the first is -1.
    """
    order = np.argsort(-probabilities, kind="stable")
    values = np.concatenate([[1.0], probabilities[order], [0.0]])
    found = np.concatenate([[0], np.cumsum(truth[order])])
    thresholds = (values[1:] + values[:-1]) / 2
    is_between_equals = values[1:] == values[:-1]
    is_between_equals[0] = False
    return np.where(is_between_equals, -1, found), thresholds


#: How thresholds are fitted; of equally good ways the first counts.
_FITS = (common_threshold, own_thresholds)


class MultiLabelTask(TextTask):
    """Any of several labels: columns of 0 and 1, or names in one column between separators.

    An example's label is a tuple of names.
    """

    kind, model_name = "multi_label", "AlbertForMultiLabel"
    card_purpose = "assigns any of {labels} labels to {texts}"
    has_several_labels = True
    usual_metrics = ("micro_f1",)

    def with_truths(self, examples, truths):
        pairs = zip(examples, zeros_and_ones(truths, self.labels, are_whole=True), strict=True)
        return [
            one._replace(label=tuple(itertools.compress(self.labels, row))) for one, row in pairs
        ]

    def truths(self, examples):
        return [list(label) for label in super().truths(examples)]

    def tuned(self, examples, answers):
        """Fits thresholds to the metric of the task, unless `threshold` is set.

        One for all labels and one for each label are compared, and the better is used. Each half of
        the examples is answered with the thresholds that were fitted to the other, so that scores
        are those of examples that the thresholds were not fitted to. The thresholds that are
        returned were fitted to all examples.
        """
        if self.config.threshold is not None or not examples:
            return answers, {}
        truth = self._truth(examples)
        probabilities = np.array([[*answer.probabilities.values()] for answer in answers])
        crossed, scores = {}, {}
        for fit in _FITS:
            thresholds = np.empty(truth.shape)
            thresholds[:] = fit(truth, probabilities, self.metric)
            for half in (slice(0, None, 2), slice(1, None, 2)) if len(examples) > 1 else ():
                other = slice(1 - half.start, None, 2)
                thresholds[half] = fit(truth[other], probabilities[other], self.metric)
            crossed[fit] = thresholds
            scores[fit] = self._scores_of(truth, probabilities >= thresholds)[self.metric]
        best = max(scores, key=scores.__getitem__)  # of equals the first
        fitted = np.broadcast_to(best(truth, probabilities, self.metric), truth.shape[1:])
        applies = (probabilities >= crossed[best]).tolist()
        answers = [
            answer._replace(labels=tuple(itertools.compress(self.labels, row)))
            for answer, row in zip(answers, applies, strict=True)
        ]
        return answers, dict(zip(self.labels, fitted.tolist(), strict=True))

    def read_out(self, examples, values, tuned=None):
        """As in `TextTask`; `tuned` has the threshold of each label."""
        ids = [example.id for example in examples]
        return labels_answers(ids, self.labels, values, self.thresholds(tuned))

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
        return self.read_out(examples, np.tile(proportions, (len(examples), 1)))

    def shown(self, answer):
        return f"`{_names(answer.labels)}`"

    def error(self, example, answer):
        wrong = set(example.label) ^ set(answer.labels)
        if not wrong:
            return None
        # How sure the model is of its worst mistake, a label too many or one too few.
        confidence = max(
            value if name in answer.labels else 1 - value
            for name, value in answer.probabilities.items()
            if name in wrong
        )
        truth, given = _names(example.label), _names(answer.labels)
        return Error(example.id, row_of(example), truth, given, confidence)

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
