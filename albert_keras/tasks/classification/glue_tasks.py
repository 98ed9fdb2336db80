"""The nine tasks of GLUE and its diagnostic set (AX): files, columns, labels, metrics.

Source: the official download and the leaderboard; columns, order of labels and the first metric as
in google-research/albert.
"""

from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean


class Columns(NamedTuple):
    """The columns of a file that are read, by name, or by number if the file has no header."""

    first: str | int  # the first text
    second: str | None = None  # the second text of a pair
    label: str | int | None = None  # None in test files
    id: str | None = None  # None if the id is the number of the row, from 0


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
    submissions: dict[str, str]  # test split -> name of the file of predictions
    labelled_splits: tuple[str, ...] = ("train", "dev")
    test_file: str | None = None  # if it is not called like its split
    score_range: tuple[float, float] | None = None  # lowest and highest score for regression
    #: Whether labelled rows with too few columns are skipped with a warning, as in the reference;
    #: otherwise they are errors.
    skips_short_rows: bool = False


_FALSE_TRUE = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
_INFERENCE = ("contradiction", "entailment", "neutral")
_SENTENCE = Columns("sentence", id="index")
_SENTENCES = Columns("sentence1", "sentence2", id="index")
_STRINGS = Columns("#1 String", "#2 String", id="index")
_QUESTIONS = Columns("question1", "question2", id="id")
_QUESTION = Columns("question", "sentence", id="index")

#: dict of str to GlueTask. All tasks by the name used on the command line.
GLUE_TASKS = {
    "cola": GlueTask(
        "CoLA",
        _FALSE_TRUE,
        ("matthews", "accuracy"),
        Columns(3, label=1),
        _SENTENCE,
        {"test": "CoLA.tsv"},
    ),
    "sst-2": GlueTask(
        "SST-2",
        _FALSE_TRUE,
        ("accuracy",),
        Columns("sentence", label="label"),
        _SENTENCE,
        {"test": "SST-2.tsv"},
    ),
    "mrpc": GlueTask(
        "MRPC",
        _FALSE_TRUE,
        ("accuracy", "f1"),
        _STRINGS._replace(label="Quality", id=None),
        _STRINGS,
        {"test": "MRPC.tsv"},
    ),
    "qqp": GlueTask(
        "QQP",
        _FALSE_TRUE,
        ("accuracy", "f1"),
        _QUESTIONS._replace(label="is_duplicate"),
        _QUESTIONS,
        {"test": "QQP.tsv"},
        skips_short_rows=True,
    ),
    "sts-b": GlueTask(
        "STS-B",
        (),
        ("pearson", "spearman", "mean_squared_error"),
        _SENTENCES._replace(label="score"),
        _SENTENCES,
        {"test": "STS-B.tsv"},
        score_range=(0.0, 5.0),
    ),
    "mnli": GlueTask(
        "MNLI",
        _INFERENCE,
        ("accuracy",),
        _SENTENCES._replace(label="gold_label"),
        _SENTENCES,
        {"test_matched": "MNLI-m.tsv", "test_mismatched": "MNLI-mm.tsv"},
        ("train", "dev_matched", "dev_mismatched"),
    ),
    "qnli": GlueTask(
        "QNLI",
        _ENTAILMENT,
        ("accuracy",),
        _QUESTION._replace(label="label"),
        _QUESTION,
        {"test": "QNLI.tsv"},
    ),
    "rte": GlueTask(
        "RTE",
        _ENTAILMENT,
        ("accuracy",),
        _SENTENCES._replace(label="label"),
        _SENTENCES,
        {"test": "RTE.tsv"},
    ),
    "wnli": GlueTask(
        "WNLI",
        _FALSE_TRUE,
        ("accuracy",),
        _SENTENCES._replace(label="label"),
        _SENTENCES,
        {"test": "WNLI.tsv"},
    ),
    "ax": GlueTask(
        "diagnostic",
        _INFERENCE,
        ("matthews",),
        None,
        _SENTENCES,
        {"test": "AX.tsv"},
        (),
        "diagnostic.tsv",
    ),
}


def glue_task(name: str) -> GlueTask:
    """Returns a task by name; raises InputError for an unknown one."""
    if name not in GLUE_TASKS:
        raise InputError(f"The GLUE task `{name}` is unknown{did_you_mean(name, GLUE_TASKS)}")
    return GLUE_TASKS[name]


def glue_file(task: str, split: str) -> GlueFile:
    """Returns the file of a split, by the names of task and split; InputError if unknown."""
    found = glue_task(task)
    splits = (*found.labelled_splits, *found.submissions)
    if split not in splits:
        raise InputError(f"The split `{split}` of {task} is unknown{did_you_mean(split, splits)}")
    submission = found.submissions.get(split)
    return GlueFile(submission and found.test_file or f"{split}.tsv", submission)


def glue_splits(name: str) -> dict[str, tuple[str, str]]:
    """Returns the files that a task is trained, scored and tested on.

    MNLI answers the diagnostic set, too, as "ax"; the task ax answers nothing else, and is trained
    and scored on the labelled files of MNLI.

    Returns:
        Split -> the name of a task and of one of its own splits; "train" is first, then those with
        labels, then those without.
    """
    base = "mnli" if name == "ax" else name
    of_base = glue_task(base)
    splits = {split: (base, split) for split in (*of_base.labelled_splits, *of_base.submissions)}
    if base == "mnli":
        splits["ax"] = ("ax", "test")
    return {
        split: source
        for split, source in splits.items()
        if name != "ax" or split == "ax" or glue_file(*source).submission is None
    }
