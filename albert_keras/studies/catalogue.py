"""Finds and reads studies: studies of the package by name, others by file."""

from functools import cache
from pathlib import Path
from typing import Any

from albert_keras.config_files.lines import read_with_lines
from albert_keras.studies.config import SCALES, Changes, StudyConfig
from data_pipeline.errors import InputError
from data_pipeline.limits import NotYaml
from data_pipeline.settings import Problem, SettingsError, did_you_mean

_FOLDER = Path(__file__).parent


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
        InputError: If there is no such study, or the file is not valid; all problems are listed,
            each with its line.
    """
    return _read(find_study(name), StudyConfig)


@cache
def scale_settings(scale: str) -> Changes:
    """Returns the settings that all studies of a scale start from.

    Raises:
        InputError: If there is no such scale.
    """
    if scale not in SCALES:
        raise InputError(f"`scale` is unknown. Received: {scale!r}{did_you_mean(scale, SCALES)}")
    values = read_with_lines(_FOLDER / "scales.yaml").values
    return Changes(**values[scale])


def _read(path: Path, settings: Any):
    try:
        file = read_with_lines(path)
    except NotYaml as error:
        raise InputError(f"Line {error.line} of `{path}` {error}") from error
    problems = [
        (again, Problem(keys, f"is given twice, first in line {first}."))
        for keys, (first, again) in file.repeated
    ]
    study = None
    try:
        study = settings(**file.values)
    except SettingsError as error:
        problems += [(file.line_of(problem.path), problem) for problem in error.problems]
    if study is None or problems:
        problems.sort(key=lambda item: item[0])
        raise SettingsError(
            f"`{path}`",
            [
                problem._replace(message=f"{problem.message} (line {line})")
                for line, problem in problems
            ],
        )
    return study
