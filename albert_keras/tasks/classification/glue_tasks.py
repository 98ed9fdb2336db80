"""The nine tasks of GLUE: files, columns, labels, metrics.

Source: the official download and the leaderboard; columns, order of labels and the first metric as
in google-research/albert.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class GlueTask:
    """A task."""

    folder: str
    labels: tuple[str, ...]  # names in the order of their numbers; none for a score
    #: Names in `albert_keras.tasks.metrics.METRICS`; the first determines the best checkpoint, all
    #: are reported by the leaderboard and the reference.
    metrics: tuple[str, ...]
    texts: tuple[str, ...]  # the columns of one or two texts
    label: str = "label"  # column of labelled files
    id: str = "index"  # column of the ids
    has_ids: bool = True  # whether labelled files have it, too; else the id is the number of a row
    #: Numbers of the columns of text and label, from 0, if labelled files have no header.
    numbers: tuple[int, int] | None = None
    score_range: tuple[float, float] | None = None  # lowest and highest score for regression
    #: Whether labelled rows with too few columns are skipped with a warning, as in the reference;
    #: otherwise they are errors.
    skips_short_rows: bool = False
    labelled_splits: tuple[str, ...] = ("train", "dev")
    test_splits: tuple[str, ...] = ("test",)  # without labels

    def columns(self, is_labelled: bool) -> tuple:
        """Returns the columns of first and second text, label and id, or None."""
        first, second = (*self.texts, None)[:2]
        if not is_labelled:
            return first, second, None, self.id
        if self.numbers is not None:
            return self.numbers[0], None, self.numbers[1], None
        return first, second, self.label, self.id if self.has_ids else None


_FALSE_TRUE = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("contradiction", "entailment", "neutral")
_SENTENCES, _STRINGS = ("sentence1", "sentence2"), ("#1 String", "#2 String")
_ACCURACY, _WITH_F1 = ("accuracy",), ("accuracy", "f1")

#: dict of str to GlueTask. All tasks by the name used on the command line.
GLUE_TASKS = {
    "cola": GlueTask("CoLA", _FALSE_TRUE, ("matthews", "accuracy"), ("sentence",), numbers=(3, 1)),
    "sst-2": GlueTask("SST-2", _FALSE_TRUE, _ACCURACY, ("sentence",), has_ids=False),
    "mrpc": GlueTask("MRPC", _FALSE_TRUE, _WITH_F1, _STRINGS, "Quality", has_ids=False),
    "qqp": GlueTask(
        "QQP",
        _FALSE_TRUE,
        _WITH_F1,
        ("question1", "question2"),
        "is_duplicate",
        "id",
        skips_short_rows=True,
    ),
    "sts-b": GlueTask(
        "STS-B",
        (),
        ("pearson", "spearman", "mean_squared_error"),
        _SENTENCES,
        "score",
        score_range=(0.0, 5.0),
    ),
    "mnli": GlueTask(
        "MNLI",
        _INFERENCE,
        _ACCURACY,
        _SENTENCES,
        "gold_label",
        labelled_splits=("train", "dev_matched", "dev_mismatched"),
        test_splits=("test_matched", "test_mismatched"),
    ),
    "qnli": GlueTask("QNLI", _ENTAILMENT, _ACCURACY, ("question", "sentence")),
    "rte": GlueTask("RTE", _ENTAILMENT, _ACCURACY, _SENTENCES),
    "wnli": GlueTask("WNLI", _FALSE_TRUE, _ACCURACY, _SENTENCES),
}
