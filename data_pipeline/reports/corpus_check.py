"""Reports what a corpus contains before a build, and the files that a build would refuse."""

import logging
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.sample_check import check_sample
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.progress import CountedProgress
from data_pipeline.reports.word_runs import HeldOutRuns, NearDuplicate, plain_words
from data_pipeline.text.corpus import Document, read_corpus, read_range
from data_pipeline.text.corpus_formats import check_format, detect_format
from data_pipeline.text.sentences import check_splitter, split_sentences
from data_pipeline.text.text_files import TextRange, corpus_bytes, find_files, split_file
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

_DEFAULTS = PretrainingDataConfig()
_QUANTILES = {"5%": 5, "median": 50, "95%": 95, "max": 100}


class CorpusReport(NamedTuple):
    """The result of `check_corpus`; all counts refer to the text that could be read."""

    problems: list[str]  # why a build would reject the corpus: the first fault of each file
    files: int
    bytes: int
    #: `documents`, `paragraphs`, `sentences`, `words` (between white space), `characters`, and
    #: with a tokenizer `pieces` (all tokens) and `unknown_pieces`.
    counts: Counter
    sentence_lengths: dict[str, int]  # quantiles, in tokens, or characters without a tokenizer
    #: Fraction of the documents that are equal to an earlier one, or differ in case, numbers and
    #: punctuation alone.
    repeated_documents: float
    near_duplicates: list[NearDuplicate]  # of held-out text, the largest share first
    held_out_share: float | None  # fraction of the runs of 8 words of held-out text in the corpus


def check_corpus(
    sources: list[str | Path],
    tokenizer: Tokenizer | None = None,
    config: PretrainingDataConfig = _DEFAULTS,
    corpus_format: str = "auto",
    heldout: list[str | Path] | None = None,
) -> CorpusReport:
    """Reports what a corpus contains; writes nothing.

    Unlike a build it continues after a file that cannot be read; documents before the fault count.

    Args:
        sources: list of str or Path, as in `read_corpus`.
        tokenizer: Tokenizer or None. Without one tokens are not reported.
        config: PretrainingDataConfig. Its language and splitter are those of the sentences.
        corpus_format: str. As in `read_corpus`.
        heldout: list of str or Path, or None. Text that must not be part of the corpus; its
            near-duplicates are reported.

    Returns:
        CorpusReport.

    Raises:
        InputError: If a source is missing or a setting is wrong.
    """
    check_format(corpus_format)
    check_splitter(config.splitter, config.language)
    held_out = HeldOutRuns(read_corpus(heldout, corpus_format) if heldout else ())
    seen = _Statistics(tokenizer, config, held_out)
    problems: list[str] = []
    ranges: list[TextRange] = []  # of the files that can be read
    files, size = find_files(sources), corpus_bytes(sources)
    progress = CountedProgress(logger, "checking", size / 1e6, "MB")
    for file in files:
        try:
            format = detect_format(file.path) if corpus_format == "auto" else corpus_format
            parts = split_file(file, format)
            for text_range in parts:
                for document in read_range(text_range):
                    seen.add(document)
                progress.add(text_range.num_bytes / 1e6)
            ranges += parts
        except InputError as error:
            problems.append(str(error))
    if not problems and not seen.counts["sentences"]:
        problems.append("The corpus is empty: it contains no sentence.")
    try:
        check_sample(ranges, tokenizer, config)
    except InputError as error:
        problems.append(str(error))
    return CorpusReport(
        problems=problems,
        files=len(files),
        bytes=size,
        counts=seen.counts,
        sentence_lengths=_quantiles(seen.sentence_lengths),
        repeated_documents=seen.num_repeated / max(seen.counts["documents"], 1),
        near_duplicates=held_out.near_duplicates(),
        held_out_share=held_out.share() if heldout else None,
    )


class _Statistics:
    """Counts of the documents that are added."""

    def __init__(self, tokenizer, config, held_out):
        self._tokenizer, self._config, self._held_out = tokenizer, config, held_out
        self.counts: Counter[str] = Counter()
        self.sentence_lengths: Counter[int] = Counter()
        self.num_repeated = 0
        self._texts: set[int] = set()  # hashes of the words of each

    def add(self, document: Document) -> None:
        text = document.text
        sentences = split_sentences(document, self._config.splitter, self._config.language)
        if self._tokenizer is None:
            lengths = np.array([len(sentence) for sentence in sentences], np.int64)
        else:
            ids, lengths = self._tokenizer.encode_sentences(sentences)
            lengths = lengths[lengths > 0]
            num_unknown = int((ids == self._tokenizer.unk_id).sum())
            self.counts.update(pieces=len(ids), unknown_pieces=num_unknown)
        self.counts.update(
            documents=1,
            paragraphs=len(document.paragraphs),
            sentences=len(lengths),
            words=len(text.split()),
            characters=len(text),
        )
        self.sentence_lengths.update(lengths.tolist())
        key = hash(tuple(plain_words(text)) or text)
        self.num_repeated += key in self._texts
        self._texts.add(key)
        self._held_out.look_in(document)


def _quantiles(lengths):
    """Returns the quantiles of lengths that are counted; all 0 without any."""
    values, shares = list(lengths.elements()) or [0], list(_QUANTILES.values())
    found = np.percentile(values, shares, method="inverted_cdf")
    return dict(zip(_QUANTILES, map(int, found), strict=True))
