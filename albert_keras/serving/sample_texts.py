"""Texts to try a model with, in its language."""

import functools
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from albert_keras.formats.detection import read_export_record
from albert_keras.tasks.task import Task


class SampleTexts(NamedTuple):
    """Texts to try a model with."""

    language: str  #: Its code in `sample_texts.yaml`.
    masked: str  #: Contains `[MASK]`.
    first: str  #: A sentence, and the one that follows it.
    second: str
    context: str  #: A passage.
    question: str  #: Answered by the passage.
    options: list[str]  #: Answers to the question; the first one is right.
    words: str  #: Words with names, separated by white space.

    def example(self, task: type[Task] | None, takes_pair: bool = False) -> dict[str, Any]:
        """Returns an example for the class of a task, a text for each of its inputs.

        A model without a task fills masks.
        """
        if task is None:
            return {"text": self.masked}
        if takes_pair:
            return {"text": self.first, "pair": self.second}
        fields = self._asdict() | {"text": self.words if task.kind == "tagging" else self.first}
        return {name: fields[name] for name in task.inputs}


#: For a model whose language is not known.
_NONE = SampleTexts("", "[MASK]", "...", "...", "...", "...", ["...", "..."], "...")


def sample_texts(version_folder: Path) -> SampleTexts:
    """Returns texts in the language of the text on which the model of a version was pre-trained.

    It is the language that was given then, or English. If it is not known, there are dots.
    """
    value: Any = read_export_record(version_folder)
    for key in ("run", "data", "language"):
        value = value.get(key) if isinstance(value, dict) else None
    return _table().get(str(value), _NONE)


@functools.cache
def _table():
    text = files("albert_keras.serving").joinpath("sample_texts.yaml").read_text(encoding="utf-8")
    table = yaml.safe_load(text)
    return {language: SampleTexts(language, **texts) for language, texts in table.items()}
