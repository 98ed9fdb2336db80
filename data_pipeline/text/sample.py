"""Samples of a corpus that are spread over all of it, and what a sample shows: the language."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import Document, corpus_ranges, read_range
from data_pipeline.text.languages import detect_language
from data_pipeline.text.sentences import LANGUAGES
from data_pipeline.text.text_files import TextRange, find_files

#: Ranges or files that a sample is taken from, and characters that show a language.
_MOST_RANGES, _SAMPLE_CHARS = 16, 200_000


def sample_documents(ranges: list[TextRange], characters: int) -> Iterator[Document]:
    """Yields documents of about so many characters, of ranges that are spread over a corpus.

    The last document of a range ends after the paragraph that completes its part of the sample.
    """
    for text_range in (chosen := _spread(ranges)):
        left = characters / len(chosen)
        for document in read_range(text_range):
            count = 0
            while left > 0 and count < len(document.paragraphs):
                left -= len(document.paragraphs[count])
                count += 1
            yield replace(document, paragraphs=document.paragraphs[:count])
            if left <= 0:
                break


def language_of(
    sources: str | Path | Iterable[str | Path], corpus_format: str = "auto"
) -> str | None:
    """Returns the code of the language of a corpus, according to a sample, for `split_sentences`.

    It is None if the language is not certain, or has no rules there. Files that cannot be read are
    left out. InputError if a source is missing.
    """
    texts: list[str] = []
    for file in (chosen := _spread(find_files(sources))):
        with contextlib.suppress(InputError):
            ranges = corpus_ranges(file.path, corpus_format)
            texts += (one.text for one in sample_documents(ranges, _SAMPLE_CHARS // len(chosen)))
    found = detect_language("\n".join(texts))
    return found if found in LANGUAGES else None


def _spread(items):
    """Returns some of many items, at regular distances."""
    numbers = np.linspace(0, len(items) - 1, _MOST_RANGES).astype(int) if items else []
    return [items[number] for number in np.unique(numbers)]
