"""Checks a corpus before a build: its contents, its faults, and the expected records."""

import codecs
import itertools
import logging
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.result import why_no_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.randomness import key_of, permute
from data_pipeline.reports.corpus_preview import Estimate, Example, RecordPreview
from data_pipeline.reports.corpus_statistics import CorpusStatistics, quantiles
from data_pipeline.reports.figures import check_figure_path, draw_histograms
from data_pipeline.text import storage
from data_pipeline.text.corpus import read_range
from data_pipeline.text.corpus_formats import check_format, detect_format, paragraphs_of
from data_pipeline.text.sentences import check_splitter
from data_pipeline.text.text_files import find_files, listing, split_file
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

_DEFAULTS = PretrainingDataConfig()
_QUANTILES = {"5%": 0.05, "median": 0.5, "95%": 0.95, "max": 1.0}
_SECONDS_BETWEEN_LINES = 5
_BLOCK = 1 << 20


class Problem(NamedTuple):
    """A reason why a build would reject the corpus, and the path of the file ("" for all files)."""

    file: str
    reason: str


class CorpusReport(NamedTuple):
    """The result of `check_corpus`. Counts refer to the text read, the estimate to all text."""

    problems: list[Problem]  # each file once, with its first fault
    files: int
    bytes: int
    share_read: float  # 1, or the fraction of a sample
    formats: dict[str, int]  # format -> number of files
    files_with_bom: int  # byte order marks and CR do no harm, readers drop them
    files_with_crlf: int
    files_without_text: int
    counts: Counter  # see `CorpusStatistics`
    repeated_documents: int  # equal to an earlier one
    repeated_text: float  # fraction of the text in such documents
    repeated_paragraphs_text: float  # fraction of the text in such paragraphs
    unit: str  # of lengths: "pieces" (tokens), or "characters" without a tokenizer
    document_lengths: dict[str, int]  # quantiles; a long text is several documents
    sentence_lengths: dict[str, int]
    unknown_characters: list[tuple[str, int]]  # the most frequent ones not in the vocabulary
    literals: dict[str, int]  # names of special tokens that occur in the text
    odd_characters: dict[str, int]  # see `Characters.odd`
    scripts: dict[str, float]  # fraction of the letters by script, the largest first
    estimate: Estimate | None  # None without a tokenizer
    examples: list[Example]
    seconds: float  # duration of the check


def check_corpus(
    sources: list[str | Path],
    tokenizer: Tokenizer | None = None,
    config: PretrainingDataConfig = _DEFAULTS,
    corpus_format: str = "auto",
    sample_mb: float = 50,
    workers: int | None = None,
    figure: str | Path | None = None,
) -> CorpusReport:
    """Checks a corpus, or a random sample of a large one; writes nothing but the figure.

    Unlike a build it continues after a file that cannot be read; documents before the fault count.
    A sample consists of whole ranges (`corpus_ranges`), selected by the seed. Faults and
    repetitions outside of it are not found.

    The number of records is the sample's, times copies, divided by the fraction read; shards are
    counted by the rule of the build. The time is

        (seconds to split and encode the sample / fraction + tokens · copies · 0.2 µs) / workers

    where the seconds are measured here, in one process. Reading and starting up are not included.

    Args:
        sources: list of str or Path, as in `read_corpus`.
        tokenizer: Tokenizer or None. Without one tokens and records are not reported.
        config: PretrainingDataConfig.
        corpus_format: str. As in `read_corpus`.
        sample_mb: float. Megabytes to read of a larger corpus, rounded up to a whole range.
        workers: int or None. Processes to estimate the time for; None takes all processors.
        figure: str, Path or None. PNG file to draw the lengths to.

    Returns:
        CorpusReport.

    Raises:
        InputError: If a source is missing or a setting is wrong, or as `check_figure_path`.
    """
    started = time.monotonic()
    if figure is not None:
        check_figure_path(figure)
    if not sample_mb > 0:
        raise InputError(f"`sample_mb` must be greater than 0. Received: {sample_mb}.")
    check_format(corpus_format)
    check_splitter(config.splitter, config.language)
    files = _Files(find_files(sources), corpus_format)
    ranges, share = _sample(files.ranges, sample_mb * 1e6, config.seed)
    statistics = CorpusStatistics(tokenizer, config)
    preview = RecordPreview(tokenizer, config) if tokenizer else None
    files.read(ranges, statistics, preview)
    problems = [Problem(path, reason) for path, reason in sorted(files.refused.items())]
    estimate = preview.estimate(share, statistics.seconds, workers) if preview else None
    if share == 1 and not problems:
        counts = Counter(statistics.counts)
        counts["instances"] = estimate.records if estimate else 1
        if not counts["sentences"]:
            counts["documents"] = 0  # a build does not count documents without tokens
        if reason := why_no_records(counts, config):
            problems.append(Problem("", reason))
    repeated_documents, repeated_text = statistics.documents.result()
    unit = "pieces" if tokenizer else "characters"
    report = CorpusReport(
        problems=problems,
        files=files.count,
        bytes=files.bytes,
        share_read=share,
        formats=dict(files.formats.most_common()),
        files_with_bom=len(files.with_bom - files.refused.keys()),
        files_with_crlf=len(files.with_crlf - files.refused.keys()),
        files_without_text=len(files.without_text),
        counts=statistics.counts,
        repeated_documents=repeated_documents,
        repeated_text=repeated_text,
        repeated_paragraphs_text=statistics.paragraphs.result()[1],
        unit=unit,
        document_lengths=quantiles(statistics.document_lengths, _QUANTILES),
        sentence_lengths=quantiles(statistics.sentence_lengths, _QUANTILES),
        unknown_characters=statistics.unknown_characters(),
        literals=dict(statistics.literals.most_common()),
        odd_characters=statistics.characters.odd(),
        scripts=statistics.characters.scripts(),
        estimate=estimate,
        examples=preview.examples() if preview else [],
        seconds=time.monotonic() - started,
    )
    if figure is not None:
        panels = statistics.panels(unit)
        draw_histograms(figure, f"{listing(sources)}: {share:.0%} read", panels)
    return report


class _Files:
    """The files of a corpus and the properties of each; files are named by their paths."""

    def __init__(self, files, corpus_format):
        self.count, self.bytes, self.formats = len(files), 0, Counter()
        self.ranges, self.refused = [], {}
        self.with_bom, self.with_crlf, self.without_text = set(), set(), set()
        for file in files:
            try:
                self.bytes += storage.size_of(file.path)
                format = detect_format(file.path) if corpus_format == "auto" else corpus_format
                self.ranges += split_file(file, format)
                self.formats[format] += 1
            except InputError as error:
                self.refused[str(file.path)] = str(error)

    def read(self, ranges, statistics, preview):
        """Reads ranges and passes on their documents; skips the rest of a file with a fault."""
        self._total, self._done = sum(part.num_bytes for part in ranges), 0
        self._started = self._last_line = time.monotonic()
        for path, parts in itertools.groupby(ranges, key=lambda part: str(part.path)):
            documents = statistics.counts["documents"]
            try:
                for part in parts:
                    self._note_marks(part, path)
                    for document in read_range(part):
                        encoded = statistics.add(document)
                        if preview:
                            preview.add(*encoded)
                        self._log_progress()
                    statistics.counts["empty_documents"] += _count_empty(part)
                    self._done += part.num_bytes
            except InputError as error:
                self.refused[path] = str(error)
            else:
                if statistics.counts["documents"] == documents:
                    self.without_text.add(path)

    def _note_marks(self, part, path):
        with storage.open_to_read(part.path, part.begin, part.end) as file:
            last = b""
            while block := file.read(_BLOCK):
                if not part.begin and not last and block.startswith(codecs.BOM_UTF8):
                    self.with_bom.add(path)
                if b"\r\n" in block or (last == b"\r" and block.startswith(b"\n")):
                    self.with_crlf.add(path)
                last = block[-1:]

    def _log_progress(self):
        now = time.monotonic()
        if now - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line, done = now, self._done / 1e6
            speed = done / (now - self._started)
            logger.info("checked %.0f of %.0f MB, %.1f MB/s", done, self._total / 1e6, speed)


def _count_empty(part):
    """Counts JSON objects without text, which `read_range` skips."""
    if part.format != "jsonl":
        return 0
    groups = itertools.groupby(paragraphs_of(part), key=lambda pair: pair[0])
    return sum(not any(text.strip() for _, text in group) for _, group in groups)


def _sample(ranges, max_bytes, seed):
    """Selects ranges; returns them in their order, and their fraction of all bytes."""
    sizes = np.array([part.num_bytes for part in ranges], np.int64)
    if sizes.sum() <= max_bytes:
        return ranges, 1.0
    order = permute(np.arange(len(ranges)), len(ranges), key_of("corpus check", seed))
    count = np.searchsorted(sizes[order].cumsum(), max_bytes) + 1
    chosen = np.sort(order[:count])
    return [ranges[index] for index in chosen], float(sizes[chosen].sum() / sizes.sum())
