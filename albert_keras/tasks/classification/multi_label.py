"""Classification with any number of labels for each text or pair, from a user's own tables."""

import functools

import numpy as np

from albert_keras.models.answers import THRESHOLD, labels_answers
from albert_keras.models.labels import zeros_and_ones
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import row_of
from albert_keras.tasks.tables.cells import listed_labels, marked_labels
from albert_keras.tasks.task import Error

#: Examples with a label from which the threshold of this label is fitted on its own.
_LEAST_EXAMPLES = 20
_NO_LABEL = "(none)"


def best_threshold(truth: np.ndarray, probabilities: np.ndarray) -> float:
    """Returns the threshold with the highest F1 on labelled examples.

    Args:
        truth: int [N]. 1 if a label applies.
        probabilities: float [N].

    Returns:
        The middle between two probabilities, or `THRESHOLD` if no label applies to any example.
    """
    if not truth.any():
        return THRESHOLD
    from sklearn.metrics import precision_recall_curve

    precision, recall, values = precision_recall_curve(truth, probabilities)
    f1 = 2 * precision * recall / np.maximum(precision + recall, np.finfo(float).tiny)
    at = int(np.argmax(f1[:-1]))  # the last one is that of no answer
    return float(values[at] + (values[at - 1] if at else 0.0)) / 2


class MultiLabelTask(TextTask):
    """Any of several labels: columns of 0 and 1, or names in one column between separators.

    An example's label is a tuple of names.
    """

    kind, model_name = "multi_label", "AlbertForMultiLabel"
    card_purpose = "assigns any of {labels} labels to {texts}"
    has_several_labels = True
    usual_metrics = ("micro_f1",)

    def truths(self, examples):
        return [list(label) for label in super().truths(examples)]

    def fit_thresholds(self, examples, answers):
        """Fits thresholds to the examples, unless `threshold` is set, so that their scores are
        slightly optimistic.

        All labels have the threshold with the highest micro F1. For the metric "macro_f1" each
        label has the one with its own highest F1, if it applies to 20 examples, as rarer ones would
        follow single examples.

        Source:
            "SCut" of Yang 2001, "A study of thresholding strategies for text categorization".
        """
        if self.config.threshold is not None or not examples:
            return answers, {}
        truth = self._truth(examples)
        values = np.array([[*answer.probabilities.values()] for answer in answers])
        fitted = dict.fromkeys(self.labels, best_threshold(truth.ravel(), values.ravel()))
        if self.metric == "macro_f1":
            for label, known, given in zip(self.labels, truth.T, values.T, strict=True):
                if known.sum() >= _LEAST_EXAMPLES:
                    fitted[label] = best_threshold(known, given)
        return self.read_out(examples, values, fitted), fitted

    def read_out(self, examples, values, thresholds=None):
        """As in `TextTask`; `thresholds` has that of each label."""
        ids = [example.id for example in examples]
        default = THRESHOLD if self.config.threshold is None else self.config.threshold
        of_labels = [(thresholds or {}).get(label, default) for label in self.labels]
        return labels_answers(ids, self.labels, values, of_labels)

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
        return zeros_and_ones(list(map(list, values)), self.labels).astype(np.int64)


def _names(labels):
    return ", ".join(labels) or _NO_LABEL


def _f1(truth, given, axis):
    """Returns F1 along an axis of int [N, C]; 0 where no label applies or is given."""
    both = (truth & given).sum(axis=axis)
    either = truth.sum(axis=axis) + given.sum(axis=axis)
    return 2 * both / np.maximum(either, 1)
