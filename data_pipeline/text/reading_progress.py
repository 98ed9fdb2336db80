"""Reads a corpus and logs how much of it has been read."""

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

from data_pipeline.progress import ProgressLines, State, bar, format_duration
from data_pipeline.text.corpus import Document, corpus_ranges, read_corpus

logger = logging.getLogger(__name__)


def read_with_progress(
    sources: str | Path | Iterable[str | Path], format: str = "auto"
) -> Iterator[Document]:
    """Yields the documents of `read_corpus`, and logs the fraction read, speed and remaining time.

    It raises the same errors as `read_corpus`.
    """
    sources = [sources] if isinstance(sources, str | Path) else list(sources)
    total = sum(text_range.num_bytes for text_range in corpus_ranges(sources, format))
    lines, done = ProgressLines(logger), 0

    def state(seconds):
        read, megabytes = min(done, total), done / 1e6
        eta = (total - read) * seconds / max(read, 1)
        speed = f"{megabytes:,.1f} MB  {megabytes / seconds:.1f} MB/s"
        text = f"reading  {bar(read / total)}  {speed}  ETA {format_duration(eta)}"
        return State(text, "reading", megabytes, total / 1e6, "MB", megabytes / seconds, eta)

    for document in read_corpus(sources, format):
        yield document
        done += len(document.text.encode())
        lines.tick(state)
