"""The nine tasks of GLUE and its diagnostic set (AX): files, columns, labels, metrics.

Source: the official download and the leaderboard; columns, order of labels and the first metric as
in google-research/albert.
"""

from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean


class Column(NamedTuple):
    number: int  # from 0, -1 for the last
    name: str | None = None  # as in the header


class Columns(NamedTuple):
    """The columns of a file that are read."""

    first: Column  # the first text
    second: Column | None = None  # the second text of a pair
    label: Column | None = None  # None in test files
    id: Column | None = None  # None if the id is the number of the row, from 0
    width: int | None = None  # number of columns of a file without a header; None if it has one


class GlueFile(NamedTuple):
    """A file of a task."""

    name: str
    #: Name of the file of predictions on the leaderboard; None for labelled files.
    submission: str | None = None


class GlueTask(NamedTuple):
    """A task."""

    folder: str
    labels: tuple[str, ...]  # names in the order of their numbers; none for a score
    #: Names in `albert_keras.tasks.metrics.METRICS`; the first determines the best checkpoint, all
    #: are reported by the leaderboard and the reference.
    metrics: tuple[str, ...]
    labelled: Columns | None  # of training and development files; None for AX
    unlabelled: Columns  # of test files
    files: dict[str, GlueFile]  # by split
    score_range: tuple[float, float] | None = None  # lowest and highest score for regression
    #: Whether labelled rows with too few columns are skipped with a warning, as in the reference;
    #: otherwise they are errors.
    skips_short_rows: bool = False


_INDEX = Column(0, "index")
_FALSE_TRUE = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("contradiction", "entailment", "neutral")
_SENTENCE = Columns(Column(1, "sentence"), id=_INDEX)


def _pair(first, second, names=("sentence1", "sentence2"), label=None, id=_INDEX):
    """Returns the columns of a pair; `first` and `second` are numbers, `label` is a name."""
    last = Column(-1, label) if label else None
    return Columns(Column(first, names[0]), Column(second, names[1]), last, id)


def _files(submission):
    return {
        "train": GlueFile("train.tsv"),
        "dev": GlueFile("dev.tsv"),
        "test": GlueFile("test.tsv", submission),
    }


_STRINGS = ("#1 String", "#2 String")
_QUESTIONS = ("question1", "question2")
_QUESTION_SENTENCE = ("question", "sentence")

#: dict of str to GlueTask. All tasks by the name used on the command line.
GLUE_TASKS = {
    "cola": GlueTask(
        "CoLA",
        _FALSE_TRUE,
        ("matthews", "accuracy"),
        Columns(Column(3), label=Column(1), width=4),
        _SENTENCE,
        _files("CoLA.tsv"),
    ),
    "sst-2": GlueTask(
        "SST-2",
        _FALSE_TRUE,
        ("accuracy",),
        Columns(Column(0, "sentence"), label=Column(1, "label")),
        _SENTENCE,
        _files("SST-2.tsv"),
    ),
    "mrpc": GlueTask(
        "MRPC",
        _FALSE_TRUE,
        ("accuracy", "f1"),
        _pair(3, 4, _STRINGS, id=None)._replace(label=Column(0, "Quality")),
        _pair(3, 4, _STRINGS),
        _files("MRPC.tsv"),
    ),
    "qqp": GlueTask(
        "QQP",
        _FALSE_TRUE,
        ("accuracy", "f1"),
        _pair(3, 4, _QUESTIONS, "is_duplicate", Column(0, "id")),
        _pair(1, 2, _QUESTIONS, id=Column(0, "id")),
        _files("QQP.tsv"),
        skips_short_rows=True,
    ),
    "sts-b": GlueTask(
        "STS-B",
        (),
        ("pearson", "spearman", "mean_squared_error"),
        _pair(7, 8, label="score"),
        _pair(7, 8),
        _files("STS-B.tsv"),
        score_range=(0.0, 5.0),
    ),
    "mnli": GlueTask(
        "MNLI",
        _INFERENCE,
        ("accuracy",),
        _pair(8, 9, label="gold_label"),
        _pair(8, 9),
        {
            "train": GlueFile("train.tsv"),
            "dev_matched": GlueFile("dev_matched.tsv"),
            "dev_mismatched": GlueFile("dev_mismatched.tsv"),
            "test_matched": GlueFile("test_matched.tsv", "MNLI-m.tsv"),
            "test_mismatched": GlueFile("test_mismatched.tsv", "MNLI-mm.tsv"),
        },
    ),
    "qnli": GlueTask(
        "QNLI",
        _ENTAILMENT,
        ("accuracy",),
        _pair(1, 2, _QUESTION_SENTENCE, "label"),
        _pair(1, 2, _QUESTION_SENTENCE),
        _files("QNLI.tsv"),
    ),
    "rte": GlueTask(
        "RTE",
        _ENTAILMENT,
        ("accuracy",),
        _pair(1, 2, label="label"),
        _pair(1, 2),
        _files("RTE.tsv"),
    ),
    "wnli": GlueTask(
        "WNLI",
        _FALSE_TRUE,
        ("accuracy",),
        _pair(1, 2, label="label"),
        _pair(1, 2),
        _files("WNLI.tsv"),
    ),
    "ax": GlueTask(
        "diagnostic",
        _INFERENCE,
        ("matthews",),
        None,
        _pair(1, 2),
        {"test": GlueFile("diagnostic.tsv", "AX.tsv")},
    ),
}


def glue_task(name: str) -> GlueTask:
    """Returns a task by name; raises InputError for an unknown one."""
    if name not in GLUE_TASKS:
        raise InputError(f"The GLUE task `{name}` is unknown{did_you_mean(name, GLUE_TASKS)}")
    return GLUE_TASKS[name]


def glue_file(task: str, split: str) -> GlueFile:
    """Returns the file of a split, by the names of task and split; InputError if unknown."""
    files = glue_task(task).files
    if split not in files:
        raise InputError(f"The split `{split}` of {task} is unknown{did_you_mean(split, files)}")
    return files[split]


def glue_splits(name: str) -> dict[str, tuple[str, str]]:
    """Returns the files that a task is trained, scored and tested on.

    MNLI answers the diagnostic set, too, as "ax"; the task ax answers nothing else, and is trained
    and scored on the labelled files of MNLI.

    Returns:
        Split -> the name of a task and of one of its own splits; "train" is first, then those with
        labels, then those without.
    """
    base = "mnli" if name == "ax" else name
    splits = {split: (base, split) for split in glue_task(base).files}
    if base == "mnli":
        splits["ax"] = ("ax", "test")
    return {
        split: source
        for split, source in splits.items()
        if name != "ax" or split == "ax" or glue_file(*source).submission is None
    }
