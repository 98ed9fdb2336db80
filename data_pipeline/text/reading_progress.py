"""Reads a corpus and logs how much of it has been read."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from data_pipeline.durations import format_duration
from data_pipeline.progress import ProgressLines, bar
from data_pipeline.text.corpus import Document, corpus_ranges, read_corpus

logger = logging.getLogger(__name__)


def read_with_progress(
    sources: str | Path | Iterable[str | Path], format: str = "auto", transient: bool = False
) -> Iterator[Document]:
    """Yields the documents of `read_corpus`, and logs the fraction read, speed and remaining time.

    `transient` is `transient_progress` of `build_records`. The errors are those of `read_corpus`.
    """
    sources = [sources] if isinstance(sources, str | Path) else list(sources)
    total = sum(text_range.num_bytes for text_range in corpus_ranges(sources, format))
    lines, done = ProgressLines(logger, transient), 0

    def line(seconds):
        read = min(done, total)
        eta = format_duration((total - read) * seconds / max(read, 1))
        speed = done / 1e6 / seconds
        return f"reading  {bar(read / total)}  {done / 1e6:,.1f} MB  {speed:.1f} MB/s  ETA {eta}"

    for document in read_corpus(sources, format):
        yield document
        done += len(document.text.encode())
        lines.tick(line)
