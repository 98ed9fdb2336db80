"""Numbers for texts or pairs: STS-B of GLUE, a user's own tables, the similarity of two texts."""

import numpy as np
import scipy.stats

from albert_keras.models.answers import scores_answers
from albert_keras.tasks import metrics
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import row_of
from albert_keras.tasks.tables.cells import score_of
from albert_keras.tasks.task import Error
from data_pipeline.errors import InputError


class ScoreTask(TextTask):
    """A number for each row. An example's label is a float."""

    kind, model_name = "regression", "AlbertForRegression"
    card_purpose = "predicts a number for {texts}"
    usual_metrics = ("pearson", "spearman", "mean_squared_error")

    labels = ()

    def __init__(self, config):
        super().__init__(config)
        if config.labels and not self.has_several_labels:
            raise InputError(
                f"`labels` of {config.name} must be none. Received: {', '.join(config.labels)}."
            )

    def read_out(self, examples, values, thresholds=None):
        return scores_answers([example.id for example in examples], self.labels, values)

    def _scores_of(self, truth, given, names=None):
        """Returns the mean of each score over the numbers, and where there are several each."""
        names = names or self._metrics
        found = [metrics.scores(names, *pair) for pair in zip(truth.T, given.T, strict=True)]
        scores = {name: float(np.mean([one[name] for one in found])) for name in names}
        return scores | {
            f"{name}_{label}": one[name]
            for label, one in zip(self.labels, found, strict=False)
            for name in names
        }

    def guesses(self, training_examples, examples):
        means = self._truth(training_examples).mean(axis=0)
        return self.read_out(examples, np.tile(means, (len(examples), 1)))

    def shown(self, answer):
        [values] = self._given([answer])
        return ", ".join(f"{value:.3g}" for value in values)

    def error(self, example, answer):
        [truth], [given] = self._truth([example]), self._given([answer])
        distance = float(np.abs(given - truth).mean())
        shown = self._shown(truth), self._shown(given)
        return Error(example.id, row_of(example), *shown, distance)

    def _shown(self, values):
        names = [f"{label} " for label in self.labels] or [""]
        pairs = zip(names, values, strict=True)
        return ", ".join(f"{name}{value:.6g}" for name, value in pairs)

    def label_kind(self, known_labels):
        return score_of

    def _numbers(self, values):
        """Returns the scores, float64 [N, K]."""
        rows = [tuple(one.values()) if isinstance(one, dict) else one for one in values]
        return np.array(rows, np.float64).reshape(-1, self.num_outputs)


class ScoresTask(ScoreTask):
    """Several numbers for each row, in columns of their own. An example's label is a tuple."""

    kind = "multi_regression"
    card_purpose = "predicts {labels} numbers for {texts}"
    has_several_labels = True
    labels = TextTask.labels

    def truths(self, examples):
        return [list(label) for label in super().truths(examples)]


class SimilarityTask(ScoreTask):
    """Similarity of pairs of texts: a cosine of vectors, learned from pairs or from scores.

    Development examples are pairs with scores, from `dev` or held out from `train`.

    Attributes:
        objective: str. "pairs" for equivalent texts, "scores" for pairs with scores.
    """

    kind, model_name = "similarity", "AlbertForSimilarity"
    card_purpose = "scores how similar two texts are, and returns a vector for a text"
    hub_pipeline = "sentence-similarity"
    usual_metrics = ("spearman", "pearson")

    def __init__(self, config):
        super().__init__(config)
        self.takes_pair, self.compares_pairs = True, False
        self.objective = config.objective
        if config.objective == "auto":
            self.objective = "pairs" if config.label is None else "scores"

    @property
    def model_settings(self):
        return {"pooling": "mean" if self.config.pooling == "auto" else self.config.pooling}

    def read(self, split):
        if split == "dev" and self.objective == "pairs" and self.config.dev is None:
            raise InputError(
                "A training for similarity must have development pairs with scores. Give `dev` "
                "with `text`, `pair` and `label`. Received: no `dev`."
            )
        return super().read(split)

    @property
    def learns_labels(self):
        return self.objective == "scores"

    def targets(self, examples):
        return super().targets(examples) if self.learns_labels else None

    def guesses(self, training_examples, examples):
        return None  # a constant answer has no correlation with anything

    def errors(self, examples, answers):
        """Returns all pairs; the confidence is the difference of the ranks, from 0 to 1."""
        columns = self._truth(examples)[:, 0], self._given(answers)[:, 0]
        ranks = [scipy.stats.rankdata(values) / len(values) for values in columns]
        errors = [
            error._replace(confidence=abs(first - second))
            for error, first, second in zip(map(self.error, examples, answers), *ranks, strict=True)
        ]
        return sorted(errors, key=lambda error: -error.confidence)
