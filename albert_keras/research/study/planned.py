"""The runs of a study at a scale, with all of their settings."""

from collections import Counter
from typing import Any, NamedTuple

from albert_keras.distillation.config import DistillationConfig
from albert_keras.research.study.config import (
    Changes,
    StudyConfig,
    VocabularyConfig,
    scale_settings,
)
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.settings import Problem, SettingsError

#: Settings of all held-out records: fixed masks of single words on the usual 15 % of the tokens,
#: once, whatever the runs are trained on.
_HELD_OUT = {
    "static_masks": True,
    "copies": 1,
    "masking": {"masked_lm_prob": 0.15, "leave_unmasked": 0.1, "max_ngram": 1},
}


class PlannedRun(NamedTuple):
    """A run of a study with all of its settings; only the seed is not final."""

    name: str
    vocabulary: VocabularyConfig
    data: PretrainingDataConfig
    config: PretrainingConfig  # a DistillationConfig if it has a teacher
    teacher: str | None  # name of another run
    corpus_share: float
    published: dict[str, float]


class PlannedStudy(NamedTuple):
    """A study at a scale."""

    study: StudyConfig
    scale: str
    runs: tuple[PlannedRun, ...]
    held_out: dict[str, PretrainingDataConfig]  # settings of the held-out records, by evaluation
    base_data: PretrainingDataConfig

    @property
    def reference(self) -> PlannedRun:
        """PlannedRun. The run that the others are compared with."""
        return next(run for run in self.runs if run.name == self.study.reference_run)

    def followed(self, run: PlannedRun) -> PretrainingDataConfig:
        """Returns the settings of the held-out records that the curve of a run is scored on."""
        own = run.data.model_dump(include={"objective", "input_format"})
        return PretrainingDataConfig(**merged(self.base_data.model_dump(), _HELD_OUT, own))


def plan_study(
    study: StudyConfig, scale: str, changes: dict[str, Any] | None = None
) -> PlannedStudy:
    """Merges the settings of scale, base and runs.

    Args:
        study: StudyConfig.
        scale: One of `SCALES`.
        changes: Settings of the base that replace its own, nested.

    Raises:
        InputError: If there is no such scale. `SettingsError`, with the problems of all runs, if
            settings do not fit together.
    """
    try:
        further = Changes(**(changes or {}))
    except SettingsError as error:
        raise SettingsError("the changes of the base", error.problems) from error
    parts = (scale_settings(scale), study.base, study.scales.get(scale), further)
    base = merged(*(part.values() for part in parts if part is not None))
    problems: list[Problem] = []
    runs = []
    for number, run in enumerate(study.runs):
        own = run.scales.get(scale)
        values = merged(base, run.values(), own.values() if own else {})
        runs.append(_collected(problems, ("runs", str(number)), _planned, run, values))
    problems = _without_repetition(problems, len(runs))
    data = base.get("data", {})
    base_data = _collected(problems, ("base",), _checked, "data", PretrainingDataConfig, data)
    problems = list(dict.fromkeys(problems))
    evaluations = {} if problems else study.evaluate  # they start from the base
    held_out = {
        name: _collected(
            problems,
            ("evaluate", name),
            _checked,
            "data",
            PretrainingDataConfig,
            merged(data, _HELD_OUT, one.data),
        )
        for name, one in evaluations.items()
    }
    if problems:
        raise SettingsError(f"the study at scale {scale}", problems)
    return PlannedStudy(study, scale, tuple(runs), held_out, base_data)


def _without_repetition(problems, num_runs):
    """Returns the problems of the runs; what all of them have is a problem of the base."""
    seen = Counter(item._replace(path=item.path[2:]) for item in problems)
    shared = [item for item, count in seen.items() if count == num_runs > 1]
    own = [item for item in problems if item._replace(path=item.path[2:]) not in shared]
    return [item._replace(path=("base", *item.path)) for item in shared] + own


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merges nested values; later ones take precedence, and lists replace lists."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, dict) and isinstance(result.get(key), dict):
                value = merged(result[key], value)
            result[key] = value
    return result


def _collected(problems, path, function, *arguments):
    """Calls a function; if its settings are not valid, adds the problems, with their path."""
    try:
        return function(*arguments)
    except SettingsError as error:
        problems += [item._replace(path=(*path, *item.path)) for item in error.problems]
        return None


def _planned(run, values):
    names = ["model", "training", "optimizer"]
    teacher = values.get("teacher")
    if teacher is not None:
        names.append("distillation")
    kind = PretrainingConfig if teacher is None else DistillationConfig
    sections = {name: values.get(name, {}) for name in names}
    problems: list[Problem] = []

    vocabulary, data = (
        _collected(problems, (), _checked, name, settings, values.get(name, {}))
        for name, settings in (("vocabulary", VocabularyConfig), ("data", PretrainingDataConfig))
    )
    config = _collected(problems, (), kind.of, sections)
    if problems:
        raise SettingsError(run.name, problems)
    return PlannedRun(
        name=run.name,
        vocabulary=vocabulary,
        data=data,
        config=config,
        teacher=teacher,
        corpus_share=values.get("corpus_share") or 1.0,
        published=dict(run.published),
    )


def _checked(name, settings, values):
    try:
        return settings(**values)
    except SettingsError as error:
        below = (item._replace(path=(name, *item.path)) for item in error.problems)
        raise SettingsError(name, below) from error
