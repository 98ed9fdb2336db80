"""Several numbers for each text or pair, from a user's own tables."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.tasks import metrics
from albert_keras.tasks.classification.task import LEAST_SPREAD, SCORE_METRICS, TextTask
from albert_keras.tasks.kinds import MULTI_REGRESSION
from albert_keras.tasks.labels import check_labels
from albert_keras.tasks.predictions import mean_outputs, one_line
from albert_keras.tasks.tables.cells import ScoreColumns
from albert_keras.tasks.task import Error, with_dropped_tokens
from data_pipeline.errors import InputError


class ScoresAnswer(NamedTuple):
    """Scores by name as the model returns them; they may be outside the range of labels."""

    id: str
    scores: dict[str, float]
    dropped_tokens: int = 0  # tokens of the input that the model did not read


def scores_answers(
    examples: Sequence, labels: Sequence[str], scores: np.ndarray
) -> list[ScoresAnswer]:
    """Answers N examples with `scores`, float [N, K], of K labels."""
    return [
        ScoresAnswer(example.id, dict(zip(labels, row, strict=True)))
        for example, row in zip(examples, scores.tolist(), strict=True)
    ]


class MultiRegressionTask(TextTask):
    """Several numbers, each in a column of its own. An example's label is a tuple of float."""

    @functools.cached_property
    def labels(self):
        return self.config.labels or tuple(map(str, self.config.label))

    def with_truth(self, example, truth):
        if len(truth) != self.num_outputs:
            raise InputError(
                f"There must be a number for each of {self.num_outputs} labels. "
                f"Received: {len(truth)}."
            )
        return example._replace(label=ScoreColumns().read(list(truth), self.labels))

    def answers(self, examples, features, results, tuned=None):
        if not examples:
            return []
        scores = mean_outputs(results, (len(examples), self.num_outputs))
        return with_dropped_tokens(scores_answers(examples, self.labels, scores), features)

    def scores(self, examples, answers):
        pairs = list(zip(self._truth(examples).T, self._given(answers).T, strict=True))
        found = [metrics.scores(SCORE_METRICS, *pair) for pair in pairs]
        scores = {name: float(np.mean([one[name] for one in found])) for name in SCORE_METRICS}
        return scores | {
            f"{name}_{label}": one[name]
            for label, one in zip(self.labels, found, strict=True)
            for name in SCORE_METRICS
        }

    def interval(self, examples, answers):
        metric = metrics.METRICS[self.metric]

        def mean(truth, given):
            return np.mean([metric(*pair) for pair in zip(truth.T, given.T, strict=True)])

        return metrics.bootstrap_interval(mean, self._truth(examples), self._given(answers))

    def guesses(self, training_examples, examples):
        means = self._truth(training_examples).mean(axis=0)
        return scores_answers(examples, self.labels, np.tile(means, (len(examples), 1)))

    def collapse(self, answers):
        given = self._given(answers)
        if len(given) < 2:
            return None
        if (np.ptp(given, axis=0) > 0).any() and (
            given.std(axis=0) >= LEAST_SPREAD * self._range()
        ).any():
            return None
        means = ", ".join(f"{value:.4g}" for value in given.mean(axis=0))
        return f"all {len(given)} scores are about {means}"

    def errors(self, examples, answers):
        given = self._given(answers)
        errors = []
        for example, answer, row in zip(examples, answers, given, strict=True):
            distance = float(np.abs(row - example.label).mean())
            text = one_line(example.first, example.second)
            truth = _listing(zip(self.labels, example.label, strict=True))
            errors.append(Error(example.id, text, truth, _listing(answer.scores.items()), distance))
        return sorted(errors, key=lambda error: -error.confidence)

    def confusion(self, examples, answers):
        return None

    def _kind_and_metrics(self):
        return MULTI_REGRESSION, SCORE_METRICS

    def _check_config(self):
        labels, columns = self.config.labels, self.config.label
        if labels and len(labels) != len(columns):
            raise InputError(
                "`labels` must have a name for each column of `label`. "
                f"Received: {len(labels)} for {len(columns)}."
            )
        if labels:
            check_labels(labels, "`labels`")

    def _label_kind(self, known_labels):
        return ScoreColumns()

    def _given(self, answers):
        return self._numbers([tuple(answer.scores.values()) for answer in answers])

    def _numbers(self, values):
        """Returns the scores, float64 [N, K]."""
        return np.array(values, np.float64).reshape(-1, self.num_outputs)

    def _range(self):
        """Returns the range of each label, 0 if it is not known."""
        if "_own_training" not in self.__dict__:
            return np.zeros(self.num_outputs)
        return np.ptp(self._truth(self._own_training), axis=0)


def _listing(scores):
    return ", ".join(f"{name} {value:.6g}" for name, value in scores)
