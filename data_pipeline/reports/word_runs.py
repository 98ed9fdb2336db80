"""Texts with the same words: repeated ones, and held-out text that a corpus contains.

Words are compared by their letters, as editions of a text differ in case, punctuation and numbers.
"""

import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import subkeys
from data_pipeline.text.corpus import Document
from data_pipeline.text.corpus_formats import UNSPACED_SCRIPTS

#: A word to compare texts by: letters, or one of a script without spaces.
_PLAIN_WORD = re.compile(rf"[^\W\d_{UNSPACED_SCRIPTS}]+|(?=[^\W\d_])[{UNSPACED_SCRIPTS}]")
#: Words of a run, and the fraction of all runs that is looked at: one in this number.
_RUN, _ONE_IN = 8, 16
#: Held-out texts that share this fraction of their runs with the corpus are near-duplicates of
#: parts of it, if at least this number of runs was looked at.
_NEAR_SHARE, _FEWEST_RUNS = 0.2, 8


class NearDuplicate(NamedTuple):
    """A held-out text with many runs of 8 words that the corpus has, too."""

    name: str
    other: str  # the text of the corpus that shares most of them
    share: float  # fraction of the runs of `name` that the corpus contains


class HeldOutRuns:
    """Finds the runs of 8 words of held-out texts in a corpus: a sample that their words decide.

    A text is a file, or a document of a file with many. Memory is that of the held-out runs.

    Source: "shingles" of Broder (1997): On the resemblance and containment of documents.
    """

    def __init__(self, documents: Iterable[Document]):
        self._texts_of: dict[int, set[str]] = defaultdict(set)  # run -> names of held-out texts
        self._found: dict[str, set[int]] = defaultdict(set)  # name -> its runs that were found
        self._shared: Counter[tuple[str, str]] = Counter()  # name, text of the corpus -> runs
        for document in documents:
            for run in _runs_of(document):
                self._texts_of[run].add(_name_of(document))
        self._sizes = Counter(name for names in self._texts_of.values() for name in names)

    def look_in(self, document: Document) -> None:
        """Looks for the runs of the held-out texts in a document of the corpus."""
        for run in self._texts_of.keys() & _runs_of(document):
            for name in self._texts_of[run]:
                self._found[name].add(run)
                self._shared[name, _name_of(document)] += 1

    def near_duplicates(self) -> list[NearDuplicate]:
        """Returns the held-out texts that share many runs with the corpus, the largest share first.

        `other` is the text that shares most of them.
        """
        found = []
        for name, runs in self._found.items():
            size = self._sizes[name]
            if size >= _FEWEST_RUNS and len(runs) >= _NEAR_SHARE * size:
                shared = {other: n for (one, other), n in self._shared.items() if one == name}
                other = max(shared, key=shared.__getitem__)
                found.append(NearDuplicate(name, other, len(runs) / size))
        return sorted(found, key=lambda pair: (-pair.share, pair.name))

    def share(self) -> float:
        """Returns the fraction of the runs of all held-out text that are in the corpus."""
        return sum(map(len, self._found.values())) / max(self._sizes.total(), 1)


def _name_of(document):
    # Parts of a long text belong together, and so do ranges of a file without documents.
    return re.sub(r"(@\d+)?(#\d+)?$", "", document.name)


def _runs_of(document) -> set[int]:
    """Returns hashes of the runs of 8 words of a document that belong to the sample."""
    codes = [zlib.crc32(word.encode()) for word in plain_words(document.text)]
    if len(codes) < _RUN:
        return set()
    windows = np.lib.stride_tricks.sliding_window_view(np.array(codes, np.uint64), _RUN)
    runs = subkeys(np.arange(_RUN, dtype=np.uint64), windows).sum(axis=1, dtype=np.uint64)
    return set(runs[runs % np.uint64(_ONE_IN) == 0].tolist())


def plain_words(text: str) -> list[str]:
    """Returns the words of a text in lower case, without what is not a letter."""
    return _PLAIN_WORD.findall(unicodedata.normalize("NFC", text).casefold())
