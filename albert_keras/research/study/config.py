"""Configuration of a study: runs that are described by their differences from one base.

`definitions/` has a YAML file for each study of the package, `scales.yaml` the settings of scales.
"""

from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import field_validator

from data_pipeline.errors import InputError
from data_pipeline.limits import read_yaml
from data_pipeline.settings import (
    Problem,
    Settings,
    SettingsError,
    did_you_mean,
    setting,
)

#: Names of the scales, from the smallest to the largest.
SCALES = ("tiny", "mini", "paper")
_FOLDER = Path(__file__).parent


class VocabularyConfig(Settings):
    """The vocabulary of a run, trained on the training part of the corpus."""

    kind: Literal["unigram", "wordpiece", "bpe"] = setting(
        "unigram", "Kind of vocabulary, as in `albert-keras vocab`."
    )
    size: int = setting(8000, "Number of pieces in the vocabulary.", ge=1, le=2**24)
    lower_case: bool = setting(True, "Convert text to lower case; bpe never does.")


class Changes(Settings):
    """Settings of a run, or the differences from other settings; all of them are optional.

    The values are checked when they are merged, see `plan_study`.
    """

    vocabulary: dict[str, Any] = setting({}, "Settings of `albert-keras vocab`.")
    data: dict[str, Any] = setting({}, "Settings of `albert-keras data build`.")
    model: dict[str, Any] = setting({}, "Named model, `size`, and settings that differ from it.")
    training: dict[str, Any] = setting({}, "Section `training` of `albert-keras pretrain`.")
    optimizer: dict[str, Any] = setting({}, "Section `optimizer` of `albert-keras pretrain`.")
    distillation: dict[str, Any] = setting({}, "Section `distillation` of `albert-keras distill`.")
    teacher: str | None = setting(None, "Name of the run that is the teacher of this one.")
    corpus_share: float | None = setting(
        None, "Fraction of the training text to use; None uses all of it.", gt=0, le=1
    )

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


def study_names() -> tuple[str, ...]:
    """Returns the names of the studies that come with the package, sorted."""
    return tuple(sorted(path.stem for path in (_FOLDER / "definitions").glob("*.yaml")))


def find_study(name: str | Path) -> Path:
    """Returns the file of a study: a path, or the file of a study that comes with the package.

    Raises:
        InputError: If there is neither such a file nor such a name.
    """
    if Path(name).is_file():
        return Path(name)
    known = study_names()
    if str(name) in known:
        return _FOLDER / "definitions" / f"{name}.yaml"
    hint = did_you_mean(str(name), known)
    if hint.endswith("?"):
        hint += f" Studies: {', '.join(known)}."
    raise InputError(f"`{name}` is neither the name of a study nor a file{hint}")


def read_study(name: str | Path) -> StudyConfig:
    """Reads a study by its name or from a file, see `find_study`.

    Raises:
        InputError: If there is no such study, or the file is not valid; all problems are listed.
    """
    path = find_study(name)
    values = read_yaml(path)
    try:
        return StudyConfig(**values)
    except SettingsError as error:
        raise SettingsError(f"`{path}`", error.problems) from None


@cache
def scale_settings(scale: str) -> Changes:
    """Returns the settings that all studies of a scale start from.

    Raises:
        InputError: If there is no such scale.
    """
    if scale not in SCALES:
        raise InputError(f"`scale` is unknown. Received: {scale!r}{did_you_mean(scale, SCALES)}")
    return Changes(**read_yaml(_FOLDER / "scales.yaml")[scale])
