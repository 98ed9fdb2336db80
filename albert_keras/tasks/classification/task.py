"""Classes of texts and pairs: GLUE, and a user's own tables."""

import functools
from typing import Any

import numpy as np

from albert_keras.models.answers import class_answers
from albert_keras.models.labels import label_ids
from albert_keras.tasks import metrics
from albert_keras.tasks.classification.glue_files import (
    official_path,
    read_glue_file,
)
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.examples import row_of
from albert_keras.tasks.labels import check_labels
from albert_keras.tasks.tables.cells import class_of
from albert_keras.tasks.tables.files import label_names, read_table
from albert_keras.tasks.task import Error, Task
from data_pipeline.errors import InputError


class TextTask(Task):
    """A task of GLUE, or a user's own table; here one of several classes for each row.

    A configuration with columns or labels that the task cannot have is an InputError.
    """

    kind, model_name = "classification", "AlbertForClassification"
    inputs: tuple[str, ...] = ("text",)
    card_purpose = "sorts {texts} into {labels} classes"
    hub_pipeline = "text-classification"
    #: Names of the scores of a user's own table, the main one first.
    usual_metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    #: Whether training examples have labels.
    learns_labels = True

    def __init__(self, config):
        super().__init__(config)
        self._glue = GLUE_TASKS.get(config.name)
        self.is_official = self._glue is not None
        self._metrics = self._glue.metrics if self._glue else self.usual_metrics
        if self._glue:
            self.test_splits = self._glue.test_splits
            if config.dev is None:
                self.dev_splits = self._glue.labelled_splits[1:]
        self.metric = config.metric or self._metrics[0]
        self._check_config()
        self.takes_pair = len(self._glue.texts) > 1 if self._glue else config.pair is not None
        self.compares_pairs = self.takes_pair

    @property
    def model_settings(self):
        encoding = "separate" if self.config.pair_encoding == "separate" else "joint"
        return {
            "num_labels": self.num_outputs,
            "labels": self.labels or None,
            "pair_encoding": encoding,
            "pooling": "mean" if self.config.pooling == "mean" else "pooler",
            "pairs": self.takes_pair,
            "threshold": self.config.threshold,
        }

    @functools.cached_property
    def labels(self):
        if self._glue:
            return self._glue.labels
        if self.config.labels:
            return self.config.labels
        if isinstance(self.config.label, tuple):
            return tuple(map(str, self.config.label))
        names = label_names(self._own_training)
        self._check_threshold(names)
        return names

    @property
    def positive_class(self):
        return self.labels[1] if "f1" in self._score_names() else None

    def _read_official(self, split):
        name, files = self.config.name, self._glue
        path = official_path(name, self.data_dir_for(split, f"`{files.folder}`"), split)
        return read_glue_file(name, path, split in files.labelled_splits, self.skipping(path))

    def read_file(self, path, labelled):
        if self._glue:
            return read_glue_file(self.config.name, path, labelled, self.skipping(path))
        return self._table(path, labelled, self.labels if labelled else None)

    def read_rows(self, path):
        if self._glue:
            return super().read_rows(path)
        columns: list[dict[str, Any]] = []
        return self._table(path, False, None, columns), columns

    def weights(self, targets):
        if self.config.class_weights != "balanced":
            return None
        from sklearn.utils.class_weight import compute_sample_weight

        return compute_sample_weight("balanced", targets).astype(np.float32)

    def read_out(
        self, examples: list, values: np.ndarray, thresholds: dict[str, float] | None = None
    ) -> list:
        """Answers N examples by the probability or the score of each label.

        Args:
            examples: Labelled or not.
            values: float [N, C].
            thresholds: As `Task.fit_thresholds` returns it.
        """
        threshold = self.config.threshold
        # The first of equals is the best.
        best = np.argmax(values, axis=1) if threshold is None else values[:, 1] >= threshold
        return class_answers(_ids(examples), self.labels, values, best.astype(int).tolist())

    def scores(self, examples, answers):
        return self._scores_of(self._truth(examples), self._given(answers))

    def resampled(self, examples, answers):
        metric = metrics.METRICS.get(self.metric)
        if self.kind != "classification":

            def metric(truth, given):
                return self._scores_of(truth, given, (self.metric,))[self.metric]

        return metric, self._truth(examples), self._given(answers)

    def _scores_of(self, truth, given, names=None):
        """Returns the scores of numbers of labels or of scores, at least those of some names."""
        return metrics.scores(names or self._score_names(), truth, given)

    def _score_names(self):
        has_f1 = self._metrics == TextTask.usual_metrics and self.num_outputs == 2
        return (*self._metrics, "f1") if has_f1 else self._metrics

    def guesses(self, training_examples, examples):
        truth = self._truth(training_examples)
        proportions = np.bincount(truth, minlength=self.num_outputs) / len(truth)
        values = np.tile(proportions, (len(examples), 1))
        numbers = np.argmax(values, axis=1).tolist()
        return class_answers(_ids(examples), self.labels, values, numbers)

    def error(self, example, answer):
        if example.label == answer.label:
            return None
        texts = row_of(example)
        return Error(example.id, texts, example.label, answer.label, answer.probability)

    def confusion(self, examples, answers):
        if self.kind != "classification":
            return None
        truth, given = self._truth(examples), self._given(answers)
        return metrics.confusion_matrix(truth, given, self.num_outputs), self.labels

    def _check_config(self):
        config, name = self.config, self.config.name
        labels = config.labels or ()
        fixed = self._glue.labels if self._glue else ()
        if fixed and labels not in ((), fixed):
            raise InputError(f"`labels` of {name} must be {', '.join(fixed)}. Received: {labels}.")
        if labels:
            check_labels(labels, "`labels`")
        if labels and isinstance(config.label, tuple) and len(labels) != len(config.label):
            raise InputError(
                "`labels` must have a name for each column of `label`. "
                f"Received: {len(labels)} for {len(config.label)}."
            )
        self._check_threshold(labels or fixed)

    def _check_threshold(self, labels):
        """Refuses a threshold of other than two classes; no labels are not known yet."""
        is_set = self.config.threshold is not None and self.kind == "classification"
        if is_set and labels and len(labels) != 2:
            raise InputError(
                "`threshold` requires two classes, of which it is the least probability of the "
                f"second one, or several labels for each row. Received: {len(labels)} classes."
            )

    @functools.cached_property
    def _own_training(self):
        """All examples of the training file, including those that may be held out."""
        if self.config.train is None:
            raise InputError("`train` must be the training file. Received: none.")
        if self._glue:
            return self.read_file(self.config.train, labelled=True)
        return self._table(self.config.train, self.learns_labels, self.config.labels)

    def _table(self, path, labelled, known_labels, all_columns=None):
        config = self.config
        if labelled and config.label is None:
            raise InputError("`label` must name the column of the label. Received: none.")
        return read_table(
            path,
            config.text,
            config.pair,
            config.label,
            self.label_kind(known_labels),
            labelled,
            encoding=config.encoding,
            delimiter=config.delimiter,
            skipped=self.skipping(path),
            all_columns=all_columns,
        )

    def label_kind(self, known_labels):
        """Returns how a label is read; names besides `known_labels`, if any, are refused."""
        return functools.partial(class_of, known=known_labels or ())

    def _truth(self, examples):
        return self._numbers([example.label for example in examples])

    def _given(self, answers):
        return self._numbers([answer[1] for answer in answers])

    def _numbers(self, values):
        """Returns the numbers of classes, int32 [N]."""
        return label_ids(values, self.labels)


def _ids(examples):
    return [example.id for example in examples]
