"""Configuration of a task and its examples."""

from collections.abc import Collection
from typing import ClassVar, Literal

from pydantic import field_validator

from albert_keras.tasks.kinds import OWN_TASKS, task_names
from albert_keras.tasks.tables.lines import checked_encoding
from data_pipeline.config import WordSplit
from data_pipeline.settings import Rule, Settings, did_you_mean, option, setting

#: How spans of characters in a file count: characters, from `start` to before `end`; the same in
#: code units of UTF-16, as JavaScript and Java do; or characters from `start` to `end`, inclusive.
Offsets = Literal["characters", "utf16", "inclusive"]

_TABLES = ("classification", "pair", "regression")
#: Tasks whose files are tables with named columns.
READ_FROM_TABLES = (*_TABLES, "similarity")


def _only_for(setting: str, tasks: Collection[str]) -> Rule:
    """Refuses a setting for other tasks."""
    return Rule(
        (setting, "name"),
        lambda value, name: value is None or name in tasks,
        f"requires one of the tasks {', '.join(tasks)}",
    )


#: Hidden size from which `pair_encoding` auto encodes both texts of a pair as one sequence: with a
#: size of 256, separate texts are better on each of five tasks (docs/measured.md).
JOINT_FROM = 512
#: Labels from which `pooling` auto is the mean over the tokens in such models: with 40 classes of
#: five examples it is 7 and 11 points better, with 2 and 11 labels often worse (docs/measured.md).
MANY_LABELS = 20


class TaskConfig(Settings):
    """A task, its files, and how its texts become rows of tokens."""

    name: str = option(
        ...,
        "Task: a GLUE task, squad1, squad2 or race; or classification, pair, regression, "
        "tagging or similarity for your own files.",
        keyword="task",
    )
    data_dir: str | None = option(None, "Folder with the official files.", is_path=True)
    train: str | None = option(
        None,
        "File of training examples, instead of the official ones: .tsv, .csv or .jsonl; CoNLL "
        "columns for tagging.",
        is_path=True,
    )
    dev: str | None = option(
        None,
        "File of development examples.",
        is_path=True,
        default_text="a tenth of the training examples",
    )
    dev_share: float = setting(
        0.1, "Fraction of the training examples that is held out if `dev` is not given.", gt=0, lt=1
    )
    text: str | int | None = option(
        None, "Column of the text: a name, or a number from 0.", metavar="COLUMN"
    )
    pair: str | int | None = option(None, "Column of the second text.", metavar="COLUMN")
    label: str | int | tuple[str | int, ...] | None = option(
        None,
        "Column of the label; repeated for several labels per row: columns of 0 and 1, or of "
        "numbers for regression.",
        metavar="COLUMN",
    )
    label_separator: str | None = option(
        None,
        "Text between several labels in one column, such as `|`; an empty cell has no label.",
        min_length=1,
        metavar="TEXT",
    )
    threshold: float | None = setting(
        None,
        "Probability from which each of several labels applies, or the second of two classes is "
        "answered. None fits the threshold of labels to the development examples, and answers the "
        "more likely of two classes.",
        gt=0,
        lt=1,
    )
    encoding: str | None = option(
        None,
        "Encoding of the files, such as utf-16 or windows-1252.",
        default_text="utf-8",
        metavar="NAME",
    )
    delimiter: str | None = option(
        None,
        "Delimiter of a .csv whose columns are given by number.",
        min_length=1,
        max_length=1,
        default_text=",",
        metavar="SIGN",
    )
    skip_bad_rows: bool = option(
        False, "Skip rows, sentences or questions that cannot be used, and list them in a file."
    )
    objective: Literal["auto", "pairs", "scores"] = option(
        "auto",
        "What a training for similarity learns from: pairs of equivalent texts, or pairs with "
        "scores. auto uses all columns given.",
    )
    pooling: Literal["auto", "mean", "cls", "pooler"] = setting(
        "auto",
        "What the vector of a text is: the mean over all tokens, the pooled output, or, for "
        "similarity, the output at [CLS]. auto is the mean for similarity, and for single texts "
        f"with {MANY_LABELS} labels or more in models that share layers and are narrower than "
        f"{JOINT_FROM}, which learn more from few examples so; else the pooled output.",
    )
    labels: tuple[str, ...] | None = setting(
        None,
        "Names of the classes or tags, in the order of their numbers. None uses the "
        "names of the task or of the training examples.",
    )
    pair_encoding: Literal["auto", "joint", "separate"] = option(
        "auto",
        "How the texts of a pair are encoded for a class or score: joint encodes both as one "
        "sequence; separate encodes each of them and compares the two vectors. auto is separate "
        f"for models narrower than {JOINT_FROM}, which compare better so.",
    )
    class_weights: Literal["none", "balanced"] = option(
        "none",
        "How much an example counts in training: none counts all equally, balanced counts each "
        "class as much as the others, as scikit-learn does.",
    )
    metric: str | None = setting(
        None,
        "Score that chooses the best checkpoint, one of those that `evaluate` prints, such as "
        "macro_f1. None is the usual one of the task.",
    )
    word_split: WordSplit | None = setting(
        None,
        "tagging: how plain text becomes words: characters; at white space with punctuation "
        "(and Chinese characters) apart, and with elisions (French l') or contractions (English "
        "n't) apart as well; or at white_space alone. None is punctuation.",
    )
    offsets: Offsets = setting(
        "characters",
        "tagging: how spans of characters in a file count: characters, with an end that is one "
        "more than the last; utf16, the same in code units of UTF-16; or inclusive, characters "
        "with an end that is the last.",
    )
    max_seq_length: int | None = option(
        None, "Tokens per row.", default_text="128; squad 384, race 512", ge=8
    )
    doc_stride: int = setting(
        128, "squad: tokens between the starts of two windows of a passage.", ge=1
    )
    max_query_length: int = setting(64, "squad: tokens after which a question is truncated.", ge=1)
    max_answer_length: int = setting(30, "squad: largest number of tokens of an answer.", ge=1)
    n_best: int = setting(20, "squad: number of candidate answers to keep.", ge=1)
    max_qa_length: int | None = setting(
        None,
        "race: tokens of a question and an option. None is 128, or a quarter of "
        "`max_seq_length` if that is less.",
        ge=1,
    )
    levels: tuple[Literal["middle", "high"], ...] = setting(
        ("middle", "high"), "race: levels of the questions.", min_length=1
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("text", "name"),
            lambda text, name: text is not None or name not in READ_FROM_TABLES,
            "must name the column of the text",
        ),
        Rule(
            ("pair", "name"),
            lambda pair, name: pair is not None or name not in ("pair", "similarity"),
            "must name the column of the second text",
        ),
        Rule(
            ("data_dir", "name"),
            lambda data_dir, name: data_dir is None or name not in OWN_TASKS,
            "must not be given: your own examples come from `train`",
        ),
        Rule(
            ("pooling", "name"),
            lambda pooling, name: pooling != "cls" or name == "similarity",
            "may be cls only for similarity",
        ),
        *(_only_for(column, OWN_TASKS) for column in ("text", "pair", "label")),
        _only_for("encoding", (*READ_FROM_TABLES, "tagging", "race")),
        _only_for("delimiter", READ_FROM_TABLES),
        _only_for("label_separator", _TABLES),
        Rule(
            ("label", "name"),
            lambda label, name: not isinstance(label, tuple) or name in _TABLES,
            f"may be several columns only for {', '.join(_TABLES)}",
        ),
        Rule(
            ("label_separator", "name", "label"),
            lambda separator, name, label: (
                separator is None or name != "regression" and not isinstance(label, tuple)
            ),
            "requires one column of names, not of numbers",
        ),
    )

    @property
    def has_several_labels(self) -> bool:
        """Whether a row of a table has several labels: several columns, or several in one."""
        return isinstance(self.label, tuple) or self.label_separator is not None

    @property
    def word_rule(self) -> WordSplit:
        """How a text becomes words: `word_split`, by default punctuation."""
        return self.word_split or "punctuation"

    @field_validator("name")
    @classmethod
    def _is_known(cls, name):
        if name not in task_names():
            raise ValueError(f"is unknown{did_you_mean(name, task_names())}")
        return name

    @field_validator("label")
    @classmethod
    def _are_different(cls, label):
        if not isinstance(label, tuple):
            return label
        columns = [str(column) for column in label]
        if not columns or len(set(columns)) < len(columns):
            raise ValueError("must be one or more different columns")
        return label if len(label) > 1 else label[0]

    @field_validator("encoding")
    @classmethod
    def _is_encoding(cls, encoding):
        return None if encoding is None else checked_encoding(encoding)
