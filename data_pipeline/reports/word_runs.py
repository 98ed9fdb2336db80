"""Near-duplicates: texts of a corpus, and of held-out text, that share many runs of words."""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import subkeys
from data_pipeline.text.corpus import Document
from data_pipeline.text.corpus_formats import UNSPACED_SCRIPTS
from data_pipeline.tokenizers.cleanup import run_of

#: A word to compare texts by; and what stretches a line or a word: soft hyphen, Arabic kashida.
_PLAIN_WORD = re.compile(rf"(?=\w)[{UNSPACED_SCRIPTS}]|[^\W_{UNSPACED_SCRIPTS}]+")
_FILLERS = "\u00ad\u0640"
#: Words of a run, and the fraction of all runs that is looked at: one in this number.
_RUN, _ONE_IN = 8, 16
#: Texts that share this fraction of the runs of the shorter one are reported, if at least this
#: number of runs was looked at.
_NEAR_SHARE, _FEWEST_RUNS = 0.2, 8
#: Texts with so many words may differ in one of them.
_LENGTHS = range(8, 51)


class NearDuplicate(NamedTuple):
    """Two texts with many equal runs of 8 words, or one that repeats itself."""

    name: str
    other: str  # the text that was read first
    share: float  # fraction of the runs of `name` that `other`, or an earlier part, contains
    held_out: bool  # whether `name` is of the held-out text, and `other` is not


class WordRuns:
    """Finds texts that share runs of 8 words, in a sample of the runs that only their words decide.

    Words are compared by their letters, as editions of a text differ in case, accents, punctuation
    and numbers. A text is a file, or a document of a file with many.

    Source: "shingles" of Broder (1997): On the resemblance and containment of documents.
    """

    def __init__(self):
        self._first: dict[int, str] = {}  # run -> the text that it was found in first
        self._sizes, self._shared = Counter(), Counter()
        self._held_out: set[str] = set()
        self._texts: set[int] = set()  # hashes of the words of each

    def add(self, document: Document, held_out: bool = False) -> bool:
        """Adds the runs of a document; `held_out` says that it must not be in the corpus.

        Returns whether its words are new; those of an earlier one in the corpus are not added.
        """
        words = lone_words(document.text)
        key = hash(words or document.text)
        if key in self._texts and not held_out:
            return False
        self._texts.add(key)
        # Parts of a long text belong together, and so do ranges of a file without documents.
        name = re.sub(r"(@\d+)?(#\d+)?$", "", document.name)
        if held_out:
            name = f"{name} (held out)"
            self._held_out.add(name)
        codes = [zlib.crc32(word.encode()) for word in words]
        if len(codes) < _RUN:
            return True
        of_runs = np.lib.stride_tricks.sliding_window_view(np.array(codes, np.uint64), _RUN)
        runs = subkeys(np.arange(_RUN, dtype=np.uint64), of_runs).sum(axis=1, dtype=np.uint64)
        chosen = runs[runs % np.uint64(_ONE_IN) == 0].tolist()
        self._sizes[name] += len(chosen)
        for run in chosen:
            if run in self._first:  # perhaps earlier in the same text
                self._shared[name, self._first[run]] += 1
            else:
                self._first[run] = name
        return True

    def near_duplicates(self) -> list[NearDuplicate]:
        """Returns the pairs of texts that share many runs, the largest share first.

        A held-out text is compared with the whole corpus, and `other` shares most of it.
        """
        shared = Counter(self._shared)
        for name in self._held_out:
            others = [pair for pair in shared if pair[0] == name and pair[1] not in self._held_out]
            if others:
                most = max(others, key=shared.__getitem__)
                shared[most] = sum(shared.pop(pair) for pair in others)
        found = [
            NearDuplicate(name, other, count / self._sizes[name], self._is_leak(name, other))
            for (name, other), count in shared.items()
            if self._sizes[name] >= _FEWEST_RUNS and count / self._sizes[name] >= _NEAR_SHARE
        ]
        return sorted(found, key=lambda pair: (-pair.share, pair.name))

    def held_out_share(self) -> float | None:
        """Returns the fraction of the runs of all held-out text that are in the corpus."""
        total = sum(self._sizes[name] for name in self._held_out)
        leaked = sum(count for pair, count in self._shared.items() if self._is_leak(*pair))
        return leaked / max(total, 1) if self._held_out else None

    def _is_leak(self, name, other):
        return name in self._held_out and other not in self._held_out


def near_texts(texts: Iterable[str], others: Iterable[str]) -> list[bool]:
    """Returns which texts equal one of the others apart from numbers, signs and perhaps one word.

    A word may be left out, added or replaced in texts of 8 to 50 words, numbers not counted.
    """
    keys = [_near_keys(text) for text in texts]
    wanted = set().union(*keys)
    found = {key for text in others for key in _near_keys(text) if key in wanted}
    return [not found.isdisjoint(one) for one in keys]


def _near_keys(text):
    """Returns hashes of all words of a text, and of all but one."""
    words = lone_words(text)
    places = range(len(words)) if len(words) in _LENGTHS else ()
    return {hash(words), *(hash(words[:at] + words[at + 1 :]) for at in places)} if words else set()


def lone_words(text: str) -> tuple[str, ...]:
    """Returns the `plain_words` that have no digits."""
    return tuple(filter(str.isalpha, plain_words(text)))


def plain_words(text: str) -> list[str]:
    """Returns the letters and digits of each word, without case, accents and vowel points."""
    if not text.isascii():
        text = run_of(_is_left_out).sub("", unicodedata.normalize("NFKD", text))
    return _PLAIN_WORD.findall(text.casefold())


def _is_left_out(character):
    return unicodedata.category(character)[0] == "M" or character in _FILLERS
