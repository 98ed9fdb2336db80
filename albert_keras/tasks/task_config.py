"""Which task, and where its examples are."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from albert_keras.tasks.glue.glue_tasks import GLUE_TASKS
from albert_keras.tasks.kinds import CLASSIFICATION, KINDS, REGRESSION
from data_pipeline.settings import Rule, Settings, did_you_mean

#: Tasks of official files besides GLUE, and tasks on anyone's own files.
OFFICIAL_TASKS = (
    *GLUE_TASKS,
    *(name for kind in KINDS.values() for name in kind.official_tasks),
)
OWN_TASKS = tuple(name for kind in KINDS.values() for name in kind.own_tasks)
TASK_NAMES = OFFICIAL_TASKS + OWN_TASKS

_TABLES = CLASSIFICATION.own_tasks + REGRESSION.own_tasks


class TaskConfig(Settings):
    """A task, its files, and how its texts are laid out.

    Attributes:
        name: str. One of `TASK_NAMES`.
        data_dir: str or None. Folder with the official files, as they come.
        train, dev: str or None. Files to take instead of the official ones; own tasks have these
            only. Without `dev` a share of an own task's training examples is held out.
        dev_share: float. That share.
        text, pair, label: str, int or None. Columns of own tables, by name or by number from 0; of
            tagged words in columns the numbers of word and tag.
        labels: tuple of str or None. Names of classes or tags in order of their numbers. None takes
            those of the task, or of own training examples.
        max_seq_length: int or None. Pieces of a row, S. None takes what is usual for the task.
        doc_stride, max_query_length, max_answer_length, n_best: int. Of squad1 and squad2, in
            pieces: how far apart windows begin, what is read of a question, the longest answer;
            and how many answers are kept.
        max_qa_length: int or None. Of race: pieces of question and option; None is 128, or a
            quarter of `max_seq_length` if that is less.
        levels: tuple of str. Of race: which questions, "middle" and "high".
    """

    name: str
    data_dir: str | None = None
    train: str | None = None
    dev: str | None = None
    dev_share: float = Field(0.1, gt=0, lt=1)
    text: str | int | None = None
    pair: str | int | None = None
    label: str | int | None = None
    labels: tuple[str, ...] | None = None
    max_seq_length: int | None = Field(None, ge=8)
    doc_stride: int = Field(128, ge=1)
    max_query_length: int = Field(64, ge=1)
    max_answer_length: int = Field(30, ge=1)
    n_best: int = Field(20, ge=1)
    max_qa_length: int | None = Field(None, ge=1)
    levels: tuple[Literal["middle", "high"], ...] = ("middle", "high")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("text", "name"),
            lambda text, name: text is not None or name not in _TABLES,
            "should name the column of the text",
        ),
        Rule(
            ("pair", "name"),
            lambda pair, name: pair is not None or name != "pair",
            "should name the column of the second text",
        ),
        Rule(
            ("data_dir", "name"),
            lambda data_dir, name: data_dir is None or name not in OWN_TASKS,
            "should be left out: own examples come from `train`",
        ),
    )

    @field_validator("name")
    @classmethod
    def _is_known(cls, name):
        if name not in TASK_NAMES:
            raise ValueError(f"is unknown{did_you_mean(name, TASK_NAMES)}")
        return name
