"""Configuration of a study: runs that are described by their differences from one base."""

from typing import Any, Literal

from pydantic import field_validator

from albert_keras.config import AlbertConfig
from albert_keras.distillation.config import TeachingConfig
from albert_keras.optimization.config import OptimizerConfig
from albert_keras.training.config import TrainingConfig
from albert_keras.training.stage_config import StageConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.settings import (
    UNKNOWN_KEY,
    Problem,
    Settings,
    SettingsError,
    did_you_mean,
    setting,
)

#: Names of the scales, from the smallest to the largest.
SCALES = ("tiny", "mini", "paper")


class VocabularyConfig(Settings):
    """The vocabulary of a run, trained on the training part of the corpus."""

    kind: Literal["unigram", "wordpiece", "bpe"] = setting(
        "unigram", "Kind of vocabulary, as in `albert-keras vocab`."
    )
    size: int = setting(8000, "Number of pieces in the vocabulary.", ge=1, le=2**24)
    lower_case: bool = setting(True, "Convert text to lower case; bpe never does.")


#: Sections of a run that are configurations of their own.
_SECTIONS: dict[str, type[Settings]] = {
    "vocabulary": VocabularyConfig,
    "data": PretrainingDataConfig,
    "training": TrainingConfig,
    "optimizer": OptimizerConfig,
    "distillation": TeachingConfig,
}


def _problems_alone(settings, values) -> list[Problem]:
    """Returns the problems of single values; conditions on several need the merged settings."""
    try:
        settings(**values)
    except SettingsError as error:
        rules = tuple(rule.message for part in _with_nested(settings) for rule in part.rules)
        return [
            problem
            for problem in error.problems
            if not problem.message.startswith(rules or ("\0",))
            and problem.message != "is required."
        ]
    except TypeError as error:  # a key that is not a string
        return [Problem((), f"must have names as keys: {error}.")]
    return []


def _with_nested(settings):
    yield settings
    for field in settings.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            yield from _with_nested(field.annotation)


class Changes(Settings):
    """Settings of a run, or the differences from other settings; all of them are optional.

    Values are checked in part here, each on its own, and completely when they are merged.
    """

    vocabulary: dict[str, Any] = setting({}, "Settings of `albert-keras vocab`.")
    data: dict[str, Any] = setting({}, "Settings of `albert-keras data build`.")
    model: dict[str, Any] = setting({}, "Named model, `size`, and settings that differ from it.")
    training: dict[str, Any] = setting({}, "Section `training` of `albert-keras pretrain`.")
    optimizer: dict[str, Any] = setting({}, "Section `optimizer` of `albert-keras pretrain`.")
    distillation: dict[str, Any] = setting({}, "Section `distillation` of `albert-keras distill`.")
    stages: list[dict[str, Any]] | None = setting(None, "Stages of `albert-keras pretrain`.")
    teacher: str | None = setting(None, "Name of the run that is the teacher of this one.")
    corpus_share: float | None = setting(
        None, "Fraction of the training text to use; None uses all of it.", gt=0, le=1
    )

    @field_validator(*_SECTIONS)
    @classmethod
    def _is_valid_alone(cls, values, info):
        problems = _problems_alone(_SECTIONS[info.field_name], values)
        if problems:
            raise SettingsError(info.field_name, problems)
        return values

    @field_validator("model")
    @classmethod
    def _has_known_keys(cls, model):
        known = {"size", *AlbertConfig.model_fields}
        problems = [
            Problem((key,), f"{UNKNOWN_KEY}{did_you_mean(key, known)}")
            for key in model
            if key not in known
        ]
        if problems:
            raise SettingsError("model", problems)
        return model

    @field_validator("stages")
    @classmethod
    def _are_stages(cls, stages):
        problems = [
            problem._replace(path=(str(number), *problem.path))
            for number, stage in enumerate(stages or ())
            for problem in _problems_alone(StageConfig, stage)
        ]
        if problems:
            raise SettingsError("stages", problems)
        return stages

    def values(self) -> dict[str, Any]:
        """Returns what is given: dict of section -> values."""
        return {name: getattr(self, name) for name in Changes.model_fields if getattr(self, name)}


class StudyRun(Changes):
    """A run of a study: in what it differs from the base."""

    name: str = setting(..., "Name of the run in the report.", min_length=1, max_length=60)
    scales: dict[Literal[SCALES], Changes] = setting({}, "Further differences, by scale.")
    published: dict[str, float] = setting(
        {}, "Results of the source for this run, by the keys of `source.measures`."
    )


class Measure(Settings):
    """A column of a published table."""

    title: str = setting(..., "Heading of the column.", min_length=1)
    compares: str | None = setting(
        None, "The evaluation of this study with which the order of the runs is compared."
    )
    higher_is_better: bool = setting(True, "Whether higher values are better.")


class Source(Settings):
    """The publication that a study repeats."""

    paper: str = setting(..., "Authors, year and title.", min_length=1)
    url: str = setting(..., "Address of the paper.", pattern=r"^https?://\S+$")
    table: str = setting(..., "Table or section, such as `table 5`.", min_length=1)
    note: str = setting("", "How the published runs differ from these.")
    measures: dict[str, Measure] = setting({}, "Columns of the published table, by key.")


class HeldOutSet(Settings):
    """Held-out records that every model of a study is scored on."""

    title: str = setting(..., "Heading of the column.", min_length=1)
    score: Literal["masked_lm", "sentence"] = setting(
        "masked_lm",
        "masked_lm scores the masked tokens; sentence scores the head of the sentence objective.",
    )
    data: dict[str, Any] = setting(
        {}, "Settings of `albert-keras data build` that differ from the base."
    )

    @field_validator("data")
    @classmethod
    def _is_valid_alone(cls, values):
        problems = _problems_alone(PretrainingDataConfig, values)
        if problems:
            raise SettingsError("data", problems)
        return values


_MASKED_LM = HeldOutSet(title="masked LM", data={"objective": "none"})


class StudyConfig(Settings):
    """A study: a base, runs as differences from it, seeds, evaluations, and what it repeats."""

    title: str = setting(..., "Title of the report.", min_length=1)
    question: str = setting("", "What the study asks, as a paragraph of the report.")
    source: Source | None = setting(None, "The publication that the study repeats.")
    seeds: int = setting(2, "Number of random seeds of each run.", ge=1, le=100)
    equal: Literal["updates", "sequences", "time"] = setting(
        "updates",
        "What is equal for all runs: optimizer steps, training sequences, or expected time.",
    )
    reference: str | None = setting(
        None, "The run that the others are compared with; None means the first one."
    )
    evaluate: dict[str, HeldOutSet] = setting(
        {"masked_lm": _MASKED_LM}, "Held-out records to score all models on.", min_length=1
    )
    base: Changes = Changes()
    scales: dict[Literal[SCALES], Changes] = setting({}, "Further settings of the base, by scale.")
    runs: tuple[StudyRun, ...]

    @field_validator("runs", mode="before")
    @classmethod
    def _is_a_list(cls, runs):
        if not isinstance(runs, list | tuple) or not runs:
            raise ValueError("must be a list of at least one run, each with its `name`")
        return runs

    @field_validator("runs")
    @classmethod
    def _fit_together(cls, runs, info):
        names, problems = [run.name for run in runs], []
        source = info.data.get("source")
        measures = source.measures if source else {}
        for number, run in enumerate(runs):
            where = str(number)
            if run.name in names[:number]:
                problems.append(
                    Problem((where, "name"), f"must be unique. Received: {run.name!r}.")
                )
            others = [name for name in names if name != run.name]
            for teacher in {change.teacher for change in (run, *run.scales.values())} - {None}:
                if teacher not in others:
                    message = f"must be another run{did_you_mean(teacher, others)}"
                    problems.append(Problem((where, "teacher"), message))
            for key in run.published:
                if key not in measures:
                    message = f"is not a key of `source.measures`{did_you_mean(key, measures)}"
                    problems.append(Problem((where, "published", key), message))
        reference = info.data.get("reference")
        if reference is not None and reference not in names:
            problems.append(
                Problem((), f"must contain the `reference`{did_you_mean(reference, names)}")
            )
        if problems:
            raise SettingsError("runs", problems)
        return runs

    @field_validator("evaluate")
    @classmethod
    def _are_compared(cls, evaluate, info):
        source = info.data.get("source")
        problems = [
            Problem(
                (), f"must contain `{measure.compares}`, which `source.measures.{key}` compares"
            )
            for key, measure in (source.measures if source else {}).items()
            if measure.compares is not None and measure.compares not in evaluate
        ]
        if problems:
            raise SettingsError("evaluate", problems)
        return evaluate

    @property
    def reference_run(self) -> str:
        """str. Name of the run that the others are compared with."""
        return self.reference or self.runs[0].name
