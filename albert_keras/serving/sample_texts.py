"""Texts to try a model with, in the language of its vocabulary."""

import functools
import re
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from albert_keras.tasks.task import Task
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.text.languages import detect_language
from data_pipeline.text.letters import UNSPACED_CHARACTER
from data_pipeline.tokenizers.tokenization import Tokenizer

_DEFAULT = "en"


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
        fields = self._asdict() | {"text": self.words if task.per_position else self.first}
        return {name: fields[name] for name in task.inputs}


def sample_texts(version_folder: Path) -> SampleTexts:
    """Returns texts in the language of the model in the folder of a version.

    The language is that of the words in its vocabulary; English if it is not certain, if there are
    no texts in it, or without a readable tokenizer.
    """
    folder = version_folder / TOKENIZER_FOLDER
    try:
        return texts_for(Tokenizer.load(folder)) if folder.is_dir() else _table()[_DEFAULT]
    except InputError:  # other commands report it; an example is not worth an error
        return _table()[_DEFAULT]


def texts_for(tokenizer: Tokenizer) -> SampleTexts:
    """Returns texts in the language of a tokenizer, see `sample_texts`."""
    pieces = map(tokenizer.shown, tokenizer.ordinary_ids.tolist())
    # A word has three characters or more, except in scripts without spaces.
    is_word = re.compile(rf" \S{{3}}|{UNSPACED_CHARACTER.pattern}").search
    words = filter(is_word, (f" {piece}" if is_start else piece for is_start, piece in pieces))
    return _table().get(detect_language(" ".join(words)), _table()[_DEFAULT])


@functools.cache
def _table():
    text = files("albert_keras.serving").joinpath("sample_texts.yaml").read_text(encoding="utf-8")
    table = yaml.safe_load(text)
    return {language: SampleTexts(language, **texts) for language, texts in table.items()}
