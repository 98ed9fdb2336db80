"""The runs of a study at a scale, with all of their settings."""

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
from data_pipeline.settings import SettingsError
from data_pipeline.text.sentences import check_splitter

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
    study: StudyConfig,
    scale: str,
    changes: dict[str, Any] | None = None,
    language: str | None = None,
) -> PlannedStudy:
    """Merges the settings of scale, base and runs.

    Args:
        study: StudyConfig.
        scale: One of `SCALES`.
        changes: Settings of the base that replace its own, nested.
        language: Code of the language of the text; None takes the one of the settings.

    Raises:
        InputError: If there is no such scale or language. `SettingsError`, with the problems of a
            run, if settings do not fit together.
    """
    of_language = {} if language is None else {"data": {"language": language}}
    try:
        further = Changes(**merged(changes or {}, of_language))
    except SettingsError as error:
        raise SettingsError("the changes of the base", error.problems) from error
    parts = (scale_settings(scale), study.base, study.scales.get(scale), further)
    base = merged(*(part.values() for part in parts if part is not None))
    runs = []
    for run in study.runs:
        own = run.scales.get(scale)
        values = merged(base, run.values(), own.values() if own else {})
        try:
            runs.append(_planned(run, values))
        except SettingsError as error:
            raise SettingsError(f"run `{run.name}` at scale {scale}", error.problems) from error
    data = base.get("data", {})
    held_out = {
        name: _checked("data", PretrainingDataConfig, merged(data, _HELD_OUT, one.data))
        for name, one in study.evaluate.items()
    }
    base_data = _checked("data", PretrainingDataConfig, data)
    check_splitter(base_data.splitter, base_data.language)
    return PlannedStudy(study, scale, tuple(runs), held_out, base_data)


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merges nested values; later ones take precedence, and lists replace lists."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, dict) and isinstance(result.get(key), dict):
                value = merged(result[key], value)
            result[key] = value
    return result


def _planned(run, values):
    names = ["model", "training", "optimizer"]
    teacher = values.get("teacher")
    if teacher is not None:
        names.append("distillation")
    kind = PretrainingConfig if teacher is None else DistillationConfig
    sections = {name: values.get(name, {}) for name in names}
    return PlannedRun(
        name=run.name,
        vocabulary=_checked("vocabulary", VocabularyConfig, values.get("vocabulary", {})),
        data=_checked("data", PretrainingDataConfig, values.get("data", {})),
        config=kind.of(sections),
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
