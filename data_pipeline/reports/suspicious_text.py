"""What a corpus should rather not contain: markup, and texts that repeat each other."""

import re
import unicodedata
import zlib
from collections import Counter
from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import subkeys
from data_pipeline.text.corpus import Document
from data_pipeline.text.letters import words_of

#: What is left of HTML, wikis, Markdown and scanned pages.
_MARKUP = re.compile(
    r"</?[A-Za-z][^<>]*>|&[A-Za-z]+;|&#\d+;|\{\{|\[\[|~~|\|.*\||^\s*(#|=|\*){2,}|^\s*#+ "
    r"|PageV?\d|```"
)
#: A paragraph with fewer letters among its characters other than spaces is no text.
_FEWEST_LETTERS, _FEWEST_CHARACTERS = 0.5, 8
#: Words of a run, and the fraction of all runs that is looked at: one in this number.
_RUN, _ONE_IN = 8, 16
#: Texts that share this fraction of the runs of the shorter one are reported, if at least this
#: number of runs was looked at.
_NEAR_SHARE, _FEWEST_RUNS = 0.2, 8


class NearDuplicate(NamedTuple):
    """Two texts with many equal runs of 8 words."""

    name: str
    other: str  # the text that was read first
    share: float  # fraction of the runs of `name` that `other` contains
    held_out: bool  # whether `name` is of the held-out text, and `other` is not


class WordRuns:
    """Finds texts that share runs of 8 words, in a sample of the runs that only their words decide.

    A text is a file, or a document of a file with many.

    Source: "shingles" of Broder (1997): On the resemblance and containment of documents.
    """

    def __init__(self):
        self._first: dict[int, str] = {}  # run -> the text that it was found in first
        self._sizes, self._shared = Counter(), Counter()
        self._held_out: set[str] = set()

    def add(self, document: Document, held_out: bool = False):
        """Adds the runs of a document; `held_out` says that it must not be in the corpus."""
        # Parts of a long text belong together, and so do ranges of a file without documents.
        name = re.sub(r"(@\d+)?(#\d+)?$", "", document.name)
        if held_out:
            name = f"{name} (held out)"
            self._held_out.add(name)
        words = [zlib.crc32(word.encode()) for word in words_of(document.text.lower())]
        if len(words) < _RUN:
            return
        of_runs = np.lib.stride_tricks.sliding_window_view(np.array(words, np.uint64), _RUN)
        runs = subkeys(np.arange(_RUN, dtype=np.uint64), of_runs).sum(axis=1, dtype=np.uint64)
        chosen = np.unique(runs[runs % np.uint64(_ONE_IN) == 0]).tolist()
        self._sizes[name] += len(chosen)
        for run in chosen:
            if (other := self._first.setdefault(run, name)) != name:
                self._shared[name, other] += 1

    def near_duplicates(self) -> list[NearDuplicate]:
        """Returns the pairs of texts that share many runs, the largest share first."""
        found = [
            NearDuplicate(
                name,
                other,
                shared / self._sizes[name],
                name in self._held_out and other not in self._held_out,
            )
            for (name, other), shared in self._shared.items()
            if self._sizes[name] >= _FEWEST_RUNS and shared / self._sizes[name] >= _NEAR_SHARE
        ]
        return sorted(found, key=lambda pair: (-pair.share, pair.name))


def looks_like_markup(paragraph: str) -> bool:
    """Returns whether a paragraph has signs of markup, or hardly any letters."""
    if _MARKUP.search(paragraph):
        return True
    visible = paragraph.replace(" ", "")
    letters = sum(unicodedata.category(character)[0] in "LM" for character in visible)
    return len(visible) >= _FEWEST_CHARACTERS and letters < _FEWEST_LETTERS * len(visible)
