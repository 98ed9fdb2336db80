"""The file of a study as a kind of file that `config check` takes."""

from collections.abc import Iterator

from albert_keras.config_files.kinds import FileKind
from albert_keras.studies.config import SCALES, StudyConfig
from albert_keras.studies.planned import plan_study
from data_pipeline.settings import Problem, SettingsError


def _contradictions(study: StudyConfig) -> Iterator[Problem]:
    """Yields the problems of the merged settings, with the scales at which they occur."""
    scales_of: dict[Problem, list[str]] = {}
    for scale in SCALES:
        try:
            plan_study(study, scale)
        except SettingsError as error:
            for problem in error.problems:
                scales_of.setdefault(problem, []).append(scale)
    for problem, scales in scales_of.items():
        where = "" if len(scales) == len(SCALES) else f" (at scale {' and '.join(scales)})"
        yield problem._replace(message=f"{problem.message}{where}")


STUDY = FileKind(
    "study",
    StudyConfig,
    "albert-keras study",
    before_file="",
    marks=frozenset(("runs", "base", "evaluate")),
    contradictions=_contradictions,
)
