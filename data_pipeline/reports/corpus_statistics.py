"""Statistics of a corpus, collected document by document in little memory.

Characters are counted in one table, lengths by their value; only the search for repetitions takes
memory that grows with the text, 12 bytes for each paragraph.
"""

import array
import hashlib
import itertools
import re
import time
import unicodedata
from collections import Counter

import numpy as np

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.reports.figures import Histogram
from data_pipeline.text.sentences import LANGUAGES, split_sentences
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Names of special tokens; in a text they are encoded like any other characters.
LITERALS = ("[MASK]", "[CLS]", "[SEP]", "<pad>", "<unk>")

_CHARACTERS_AT_ONCE, _NUM_CODE_POINTS = 1 << 20, 0x110000
_ODD = {"Cc": "control", "Cf": "invisible", "Co": "private", "Cn": "unassigned"}
#: Characters of Han, kana, Thai, Lao, Burmese and Khmer, for a regular expression: each counts as a
#: word.
UNSPACED_SCRIPTS = (
    "\u2e80-\u30ff\u31c0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
)
_UNSPACED_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")
_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+")
#: Scripts, each with its languages of `sentences.LANGUAGES`; the others use Latin letters.
_LANGUAGES_OF_SCRIPTS = (
    "Latin az kk sr; Cyrillic be bg kk mk ru sr uk; Greek el; Arabic ar fa ur; Hebrew he; "
    "Han ja ko zh; Hiragana ja; Katakana ja; Hangul ko; Devanagari hi mr ne; Bengali bn; "
    "Gujarati gu; Gurmukhi pa; Kannada kn; Malayalam ml; Oriya or; Tamil ta; Telugu te; Thai th; "
    "Myanmar my; Ethiopic am; Armenian hy; Georgian ka"
)


class CorpusStatistics:
    """Splits and encodes documents, and counts their contents.

    Without a tokenizer lengths are in characters.
    """

    def __init__(self, tokenizer: Tokenizer | None, config: PretrainingDataConfig):
        self._tokenizer, self._config = tokenizer, config
        #: `documents`, `empty_documents` (no tokens), `one_sentence_documents`, `paragraphs`,
        #: `sentences`, `words`, `characters`, and with a tokenizer `pieces` (all tokens),
        #: `unknown_pieces` and `long_sentences` (more tokens than fit into a record).
        self.counts = Counter()
        self.literals = Counter()  # how often the text contains "[MASK]" and similar names
        self.document_lengths, self.sentence_lengths = Counter(), Counter()  # length -> number
        self.documents, self.paragraphs = Repeats(), Repeats()
        self.characters = Characters()
        self.seconds = 0.0  # spent on splitting and encoding
        if tokenizer:
            tokenizer.encode_sentences(["x"])  # excludes the setup at the first use from the time

    def add(self, document):
        """Counts a Document.

        Returns all ids, int32 [T], and the number of tokens of each sentence, int64 [n], none of
        them 0; without a tokenizer no ids, and lengths in characters.
        """
        started = time.perf_counter()
        ids, lengths = self._encode(document)
        self.seconds += time.perf_counter() - started
        text = document.text
        self.characters.add(text)
        self.documents.add(text)
        for paragraph in document.paragraphs:
            self.paragraphs.add(paragraph)
        self.literals.update({name: count for name in LITERALS if (count := text.count(name))})
        self.sentence_lengths.update(lengths.tolist())
        self.document_lengths[int(lengths.sum())] += 1
        self.counts.update(
            documents=1,
            empty_documents=len(lengths) == 0,
            one_sentence_documents=len(lengths) == 1,
            paragraphs=len(document.paragraphs),
            sentences=len(lengths),
            words=count_words(text),
            characters=len(text),
        )
        if self._tokenizer:
            self.counts.update(
                pieces=len(ids),
                unknown_pieces=int((ids == self._tokenizer.unk_id).sum()),
                long_sentences=int((lengths > self._config.max_num_tokens).sum()),
            )
        return ids, lengths

    def unknown_characters(self):
        """Returns (character, count) of the ten most frequent ones not in the vocabulary."""
        if not self.counts["unknown_pieces"]:
            return []
        encode, unk_id = self._tokenizer.encode, self._tokenizer.unk_id
        unknown = (pair for pair in self.characters.most_common() if unk_id in encode(pair[0]))
        return list(itertools.islice(unknown, 10))

    def panels(self, unit: str) -> list[Histogram]:
        """Returns the panels of a figure of the lengths, which are in `unit`."""
        kinds = {"documents": self.document_lengths, "sentences": self.sentence_lengths}
        return [_panel(f"Length of {name}", lengths, unit) for name, lengths in kinds.items()]

    def _encode(self, document):
        sentences = split_sentences(document, self._config.splitter, self._config.language)
        if self._tokenizer is None:
            lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
            return np.zeros(0, np.int32), lengths
        ids, lengths = self._tokenizer.encode_sentences(sentences)
        return ids, lengths[lengths > 0]


class Repeats:
    """Finds texts that were added before, by their hash."""

    def __init__(self):
        self._hashes, self._sizes = array.array("Q"), array.array("I")

    def add(self, text):
        self._hashes.frombytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
        self._sizes.append(len(text))

    def result(self) -> tuple[int, float]:
        """Returns the number of repeated texts, and their fraction of all characters."""
        sizes = np.frombuffer(self._sizes, np.uint32)
        if not len(sizes):
            return 0, 0.0
        _, first = np.unique(self._hashes, return_index=True)
        kept = int(sizes[first].sum(dtype=np.int64))
        return len(sizes) - len(first), 1 - kept / int(sizes.sum(dtype=np.int64))


class Characters:
    """Counts characters."""

    def __init__(self):
        self._counts = np.zeros(_NUM_CODE_POINTS, np.int64)
        self._texts, self._size = [], 0

    def add(self, text):
        """Counts the characters of a text, except the line ends between paragraphs."""
        self._texts.append(text)
        self._size += len(text)
        if self._size >= _CHARACTERS_AT_ONCE:
            self._flush()

    def _flush(self):
        codes = np.frombuffer("".join(self._texts).encode("utf-32-le"), "<u4")
        counts = np.bincount(codes)
        self._counts[: len(counts)] += counts
        self._counts[ord("\n")] = 0
        self._texts, self._size = [], 0

    def most_common(self):
        """Returns (character, count) of all characters found, the most frequent first."""
        self._flush()
        codes = np.flatnonzero(self._counts)
        codes = codes[np.argsort(-self._counts[codes], kind="stable")]
        return [(chr(code), int(self._counts[code])) for code in codes]

    def odd(self) -> dict[str, int]:
        """Counts characters that are rare in text, by kind.

        "replacement" is U+FFFD: characters were lost when the text was decoded; "invisible" has no
        width; "private" are code points for private use.
        """
        odd = dict.fromkeys(("replacement", *_ODD.values()), 0)
        for character, count in self.most_common():
            kind = _ODD.get(unicodedata.category(character))
            kind = "replacement" if character == "\ufffd" else kind
            if kind:
                odd[kind] += count
        return odd

    def scripts(self) -> dict[str, float]:
        """Returns script -> fraction of all letters, the largest first."""
        letters = Counter()
        for character, count in self.most_common():
            if character.isalpha():
                letters[_script_of(character)] += count
        total = max(letters.total(), 1)
        return {script: count / total for script, count in letters.most_common()}


def expected_scripts(language: str) -> tuple[str, ...]:
    """Returns the scripts in which a language is written."""
    rows = (row.split() for row in _LANGUAGES_OF_SCRIPTS.split(";"))
    return tuple(script for script, *languages in rows if language in languages) or ("Latin",)


def languages_of_script(script: str) -> str:
    """Returns the codes of the languages written in a script, such as "be, bg or ru"."""
    known = (language for language in LANGUAGES if script in expected_scripts(language))
    *others, last = sorted(known) or ["another language"]
    return f"{', '.join(others)} or {last}" if others else last


def quantiles(lengths: Counter, probabilities: dict[str, float]) -> dict[str, int]:
    """Returns the smallest lengths that are not exceeded with given probabilities (by name).

    `lengths` counts each length; without any all quantiles are 0.
    """
    if not lengths:
        return dict.fromkeys(probabilities, 0)
    values, counts = np.array(sorted(lengths.items())).T
    cumulative = counts.cumsum()
    # The small difference makes half of 2 equal to 1, whatever the rounding.
    return {
        name: int(values[np.searchsorted(cumulative, probability * cumulative[-1] - 1e-9)])
        for name, probability in probabilities.items()
    }


def _panel(title, lengths, unit):
    # Without the longest 1 %, which would leave little space for the others.
    largest = quantiles(lengths, {"99%": 0.99})["99%"]
    values, counts = np.array(list(lengths.items()), int).reshape(-1, 2).T
    return Histogram.of_values(
        title,
        values,
        counts,
        largest,
        x_label=unit,
        y_label="fraction",
        note=f"the longest: {max(lengths, default=0)}",
    )


def count_words(text: str) -> int:
    """Counts what white space separates; in scripts without spaces each character is a word."""
    if text.isascii() or not _UNSPACED_CHARACTER.search(text):
        return len(text.split())
    return len(_WORD.findall(text))


def _script_of(letter):
    name = unicodedata.name(letter, "other").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
    first = name.split()[0]
    return "Han" if first == "CJK" else first.capitalize()
