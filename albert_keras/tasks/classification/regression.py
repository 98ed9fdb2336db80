"""One or several numbers for each text or pair: STS-B of GLUE, and a user's own tables."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from albert_keras.tasks import metrics
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.kinds import MULTI_REGRESSION, REGRESSION
from albert_keras.tasks.tables.cells import score_of
from albert_keras.tasks.task import Error, logits_of, one_line, with_dropped_tokens
from data_pipeline.errors import InputError

#: Scores that spread less than this fraction of the range of labels count as all the same.
_LEAST_SPREAD = 1e-3


class ScoreAnswer(NamedTuple):
    """A score as the model returns it; it may be outside the range of labels."""

    id: str
    score: float
    dropped_tokens: int = 0  # tokens of the input that the model did not read


class ScoresAnswer(NamedTuple):
    """Several scores by name, as in `ScoreAnswer`."""

    id: str
    scores: dict[str, float]
    dropped_tokens: int = 0


def score_answers(examples: Sequence, scores: np.ndarray) -> list[ScoreAnswer]:
    """Answers N examples with `scores`, float [N]."""
    return [
        ScoreAnswer(example.id, score)
        for example, score in zip(examples, scores.tolist(), strict=True)
    ]


def scores_answers(
    examples: Sequence, labels: Sequence[str], scores: np.ndarray
) -> list[ScoresAnswer]:
    """Answers N examples with `scores`, float [N, K], of K labels."""
    return [
        ScoresAnswer(example.id, dict(zip(labels, row, strict=True)))
        for example, row in zip(examples, scores.tolist(), strict=True)
    ]


class ScoreTask(TextTask):
    """K numbers for each row, several of them in columns of their own.

    An example's label is a float, or a tuple of float where there are several.
    """

    kind = REGRESSION
    usual_metrics = ("pearson", "spearman", "mean_squared_error")

    def __init__(self, config):
        self._is_single = not config.has_several_labels
        if not self._is_single:
            self.kind = MULTI_REGRESSION
        super().__init__(config)
        if self._is_single and config.labels:
            raise InputError(
                f"`labels` of {config.name} must be none. Received: {', '.join(config.labels)}."
            )

    @functools.cached_property
    def labels(self):
        if self._is_single:
            return ()
        return self.config.labels or tuple(map(str, self.config.label))

    def with_truth(self, example, truth):
        values = [truth] if self._is_single else list(truth)
        if len(values) != self.num_outputs:
            raise InputError(
                f"There must be a number for each of {self.num_outputs} labels. "
                f"Received: {len(values)}."
            )
        names = ["label"] if self._is_single else self.labels
        return example._replace(label=score_of(values, names))

    def features(self, examples, tokenizer, training=False):
        features = super().features(examples, tokenizer, training)
        if self._is_single and features.labels is not None:
            features.labels = features.labels[:, 0]
        return features

    def answers(self, examples, features, outputs, tuned=None):
        if not examples:
            return []
        scores = logits_of(outputs, (len(examples), self.num_outputs))
        return with_dropped_tokens(self._answers(examples, scores), features)

    def _answers(self, examples, scores):
        if self._is_single:
            return score_answers(examples, scores[:, 0])
        return scores_answers(examples, self.labels, scores)

    def scores(self, examples, answers):
        """Returns the mean of each score over the numbers, and where there are several each."""
        pairs = zip(self._truth(examples).T, self._given(answers).T, strict=True)
        found = [metrics.scores(self._metrics, *pair) for pair in pairs]
        scores = {name: float(np.mean([one[name] for one in found])) for name in self._metrics}
        return scores | {
            f"{name}_{label}": one[name]
            for label, one in zip(self.labels, found, strict=not self._is_single)
            for name in self._metrics
        }

    def interval(self, examples, answers):
        metric = metrics.METRICS[self.metric]

        def mean(truth, given):
            return np.mean([metric(*pair) for pair in zip(truth.T, given.T, strict=True)])

        return metrics.bootstrap_interval(mean, self._truth(examples), self._given(answers))

    def guesses(self, training_examples, examples):
        means = self._truth(training_examples).mean(axis=0)
        return self._answers(examples, np.tile(means, (len(examples), 1)))

    def collapse(self, answers):
        given = self._given(answers)
        if len(given) < 2:
            return None
        least = _LEAST_SPREAD * self._range()
        if (np.ptp(given, axis=0) > 0).any() and (given.std(axis=0) >= least).any():
            return None
        means = ", ".join(f"{value:.4g}" for value in given.mean(axis=0))
        return f"all {len(given)} scores are about {means}"

    def error(self, example, answer):
        [truth], [given] = self._truth([example]), self._given([answer])
        distance = float(np.abs(given - truth).mean())
        text = one_line(example.first, example.second)
        return Error(example.id, text, self._shown(truth), self._shown(given), distance)

    def confusion(self, examples, answers):
        return None

    def _shown(self, values):
        names = [f"{label} " for label in self.labels] or [""]
        pairs = zip(names, values, strict=True)
        return ", ".join(f"{name}{value:.6g}" for name, value in pairs)

    def _label_kind(self, known_labels):
        return score_of

    def _given(self, answers):
        if self._is_single:
            return self._numbers([answer.score for answer in answers])
        return self._numbers([tuple(answer.scores.values()) for answer in answers])

    def _numbers(self, values):
        """Returns the scores, float64 [N, K]."""
        return np.array(values, np.float64).reshape(-1, self.num_outputs)

    def _range(self):
        """Returns the range of each label, 0 if it is not known."""
        if self._glue:
            return np.ptp(self._glue.score_range)
        if "_own_training" not in self.__dict__:  # not read, as no training file is needed
            return 0.0
        return np.ptp(self._truth(self._own_training), axis=0)
