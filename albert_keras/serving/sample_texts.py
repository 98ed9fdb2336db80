"""Texts to try a model with, in the language of its vocabulary."""

import functools
import itertools
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.tasks.kind import TaskKind
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer

_DEFAULT = "en"
#: A character that the vocabulary lacks costs as much as this number of pieces.
_COST_OF_UNKNOWN = 3
#: Share of characters that are part of unknown pieces above which a language is not the right one.
_MAX_UNKNOWN = 0.2
#: A language is not the right one either if another one costs hardly more, unless the vocabulary is
#: good at several, and needs at most this number of pieces per character.
_CLEARLY_MORE, _FEW_PIECES = 1.1, 0.35
#: Number of words for the texts of a vocabulary whose language is not in the table.
_NUM_WORDS, _MIN_LETTERS = 12, 3


class SampleTexts(NamedTuple):
    """Texts to try a model with."""

    language: str | None  #: Its code in `sample_texts.yaml`; None if it is not in the table.
    masked: str  #: Contains `[MASK]`.
    first: str  #: A sentence, and the one that follows it.
    second: str
    context: str  #: A passage.
    question: str  #: Answered by the passage.
    options: list[str]  #: Answers to the question; the first one is right.
    words: str  #: Words with names, separated by white space.

    def example(self, kind: TaskKind | None, takes_pair: bool = False) -> dict[str, Any]:
        """Returns an example for a kind of task, a text for each of its fields.

        A model without a task fills masks. In English, the sample of the kind is used, unless
        the task takes pairs.
        """
        if kind is None:
            return {"text": self.masked}
        if takes_pair:
            return {"text": self.first, "pair": self.second}
        if self.language == _DEFAULT:
            return dict(kind.sample)
        text = self.words if kind.per_position else self.first
        fields = self._asdict() | {"text": text}
        return {name: fields.get(name, kind.sample[name]) for name in kind.fields}


def sample_texts(version_folder: Path) -> SampleTexts:
    """Returns texts in the language of the model in the folder of a version.

    The language is the one whose texts take the fewest pieces of its vocabulary. If the vocabulary
    is made for none of the languages, the texts consist of its first words. Without a readable
    tokenizer the language is English.
    """
    folder = version_folder / TOKENIZER_FOLDER
    try:
        tokenizer = Tokenizer.load(folder) if folder.is_dir() else None
    except InputError:  # other commands report it; an example is not worth an error
        tokenizer = None
    return _table()[_DEFAULT] if tokenizer is None else texts_for(tokenizer)


def texts_for(tokenizer: Tokenizer) -> SampleTexts:
    """Returns texts in the language of a tokenizer, see `sample_texts`."""
    language = _language_of(tokenizer)
    if language is not None:
        return _table()[language]
    words = list(itertools.islice(_words(tokenizer), _NUM_WORDS)) or [tokenizer.piece_of(0)]
    half = max(len(words) // 2, 1)
    return SampleTexts(
        language=None,
        masked=" ".join([*words[:2], MASK_LITERAL, *words[2:half]]),
        first=" ".join(words[:half]),
        second=" ".join(words[half:] or words),
        context=" ".join(words),
        question=" ".join(words[:3]),
        options=[words[0], words[-1]],
        words=" ".join(words),
    )


@functools.cache
def _table():
    text = files("albert_keras.serving").joinpath("sample_texts.yaml").read_text(encoding="utf-8")
    table = yaml.safe_load(text)
    return {language: SampleTexts(language, **texts) for language, texts in table.items()}


def _language_of(tokenizer):
    """Returns the language of the table that a vocabulary is made for, or None."""
    costs = {}  # language -> cost in pieces, and pieces per character
    for language, texts in _table().items():
        text = " ".join((texts.first, texts.second, texts.context, texts.question))
        ids = tokenizer.encode(text)
        size = len("".join(text.split()))
        known = sum(len(tokenizer.shown(id)[1]) for id in ids if id != tokenizer.unk_id)
        unknown = max(size - known, 0) if tokenizer.unk_id in ids else 0
        if unknown <= _MAX_UNKNOWN * size:
            costs[language] = len(ids) + _COST_OF_UNKNOWN * unknown, len(ids) / size
    if not costs:
        return None
    (best, (cost, share)), *others = sorted(costs.items(), key=lambda one: one[1])
    is_clear = all(other > _CLEARLY_MORE * cost for _, (other, _) in others[:1])
    return best if is_clear or share <= _FEW_PIECES else None


def _words(tokenizer):
    """Yields pieces that are words of letters, in the order of the vocabulary."""
    starts = tokenizer.word_starts()
    for id in map(int, tokenizer.ordinary_ids):
        _, word = tokenizer.shown(id)
        if starts[id] and word.isalpha() and len(word) >= _MIN_LETTERS:
            yield word
