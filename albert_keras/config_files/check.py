"""Finds all problems of a file of settings at once, each with its line. No TensorFlow."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.config_files.kinds import PRETRAIN, FileKind, kind_of
from albert_keras.config_files.lines import ReadFile, read_with_lines
from albert_keras.training.loop.loop_config import RunConfig
from data_pipeline.errors import InputError
from data_pipeline.limits import NotYaml
from data_pipeline.settings import (
    UNKNOWN_KEY,
    Problem,
    Settings,
    SettingsError,
    did_you_mean,
)


class LocatedProblem(NamedTuple):
    """A problem and where it is."""

    line: int  # counted from 1
    key: str  # the dotted key; "" for the whole file
    message: str  # the rule, and what was received


class CheckedFile(NamedTuple):
    """The result of a check."""

    path: Path
    kind: FileKind
    settings: int  # number of settings that the file gives
    problems: list[LocatedProblem]  # in the order of their lines

    def lines(self) -> list[str]:
        """Returns the problems as `file:line  key message`."""
        return [
            f"{self.path}:{line}  `{key}` {message}" if key else f"{self.path}:{line}  {message}"
            for line, key, message in self.problems
        ]


def check_file(
    path: str | Path, kind: FileKind | None = None, others: Iterable[FileKind] = ()
) -> CheckedFile:
    """Checks a file of settings without running anything.

    Args:
        path: A YAML or JSON file.
        kind: What the file is for; None finds out from its keys.
        others: Kinds that the file may have beside `FILE_KINDS`.

    Raises:
        InputError: If the file does not exist or is too large. All other problems are returned.
    """
    path = Path(path)
    try:
        file = read_with_lines(path)
    except NotYaml as error:
        return CheckedFile(path, kind or PRETRAIN, 0, [LocatedProblem(error.line, "", str(error))])
    kind = kind or kind_of(file.values, others)
    located = [
        LocatedProblem(again, ".".join(keys), f"is given twice, first in line {first}.")
        for keys, (first, again) in file.repeated
    ]
    located += [
        LocatedProblem(file.line_of(problem.path), ".".join(problem.path), problem.message)
        for problem in _problems(file, kind)
    ]
    leaves = [keys for keys in file.lines if not _is_section(file, keys)]
    return CheckedFile(path, kind, len(leaves), sorted(located))


def _problems(file: ReadFile, kind: FileKind) -> Iterator[Problem]:
    values = dict(file.values)
    if issubclass(kind.config, RunConfig):
        for name, value in file.values.items():
            if name not in kind.config.model_fields:
                del values[name]  # its message would be that it is no section
                yield Problem((str(name),), f"{UNKNOWN_KEY}{_hint(str(name), (), kind)}")
            elif _is_nested(kind.config, name) and not isinstance(value, dict | None):
                del values[name]
                yield Problem((name,), f"must contain keys and values. Received: {value!r}.")
    try:
        settings = _create(kind, values)
    except SettingsError as error:
        for problem in error.problems:
            if problem.message.startswith(UNKNOWN_KEY):
                *section, name = problem.path
                hint = _hint(name, tuple(section), kind, problem.message)
                problem = problem._replace(message=f"{UNKNOWN_KEY}{hint}")
            yield problem
        # The problems of paths do not depend on the other settings.
        yield from _missing_files(file.values)
        return
    yield from _contradictions(settings, kind)
    yield from _missing_files(file.values)


def _create(kind, values) -> Settings:
    if issubclass(kind.config, RunConfig):
        return kind.config.of(values)
    return kind.config(**values)


def _contradictions(settings: Any, kind: FileKind) -> Iterator[Problem]:
    """Yields problems that a run would find after it has started."""
    if kind.contradictions is not None:
        yield from kind.contradictions(settings)
    if not issubclass(kind.config, RunConfig):
        return
    steps = settings.training.steps
    if steps is not None:
        try:
            settings.optimizer.warmup_for(steps)
        except InputError:
            received = f"warmup_steps={settings.optimizer.warmup_steps}, steps={steps}"
            message = f"must not exceed the steps of the run. Received: {received}."
            yield Problem(("optimizer", "warmup_steps"), message)
    if issubclass(kind.config, PRETRAIN.config):  # or distill
        try:
            settings.albert_config(vocab_size=1)
        except SettingsError as error:
            yield from error.problems


def _missing_files(values: dict[str, Any]) -> Iterator[Problem]:
    """Yields the files and folders that do not exist."""
    task = values.get("task")
    for name in ("train", "dev", "data_dir"):
        path = task.get(name) if isinstance(task, dict) else None
        if isinstance(path, str) and "://" not in path and not Path(path).exists():
            yield Problem(("task", name), f"must exist. Received: {path!r}.")
    stages = values.get("stages")
    for number, stage in enumerate(stages if isinstance(stages, list) else ()):
        path = stage.get("data") if isinstance(stage, dict) else None
        if isinstance(path, str) and not Path(path).is_dir():
            message = f"must be a folder of records. Received: {path!r}. Create it with data build."
            yield Problem(("stages", str(number), "data"), message)


def _hint(name: str, section: tuple[str, ...], kind: FileKind, message: str = "") -> str:
    """Completes "is not a known key" with the section that has this key, or with a similar key."""
    homes = {known[:-1] for known in _all_keys(kind.config) if known[-1] == name}
    if homes - {section}:
        home = ".".join(min(homes - {section})) or "the top level"
        return f" here; it belongs to {home if home == 'the top level' else f'`{home}`'}."
    if message:
        return message.removeprefix(UNKNOWN_KEY)
    known = kind.config.model_fields
    hint = did_you_mean(name, known)
    if hint.endswith("?"):
        return hint
    deeper = did_you_mean(name, {keys[-1] for keys in _all_keys(kind.config)})
    similar = re.search(r"`(.+)`", deeper)
    if similar:
        return f". Did you mean `{'.'.join(_path_of(similar[1], kind))}`?"
    return hint


def _path_of(name, kind):
    return next(keys for keys in _all_keys(kind.config) if keys[-1] == name)


def _all_keys(config: type[Settings], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    keys = []
    for name, field in config.model_fields.items():
        keys.append((*path, name))
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            keys += _all_keys(field.annotation, (*path, name))
    return keys


def _is_nested(config, name):
    return config.model_fields[name].default != ()  # `stages` is a list


def _is_section(file, keys):
    return any(other[:-1] == keys for other in file.lines)
