"""A sample of a corpus that is spread over all of it."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from data_pipeline.text.corpus import Document, read_range
from data_pipeline.text.text_files import TextRange

#: Ranges that a sample is taken from.
_MOST_RANGES = 16


def sample_documents(ranges: list[TextRange], characters: int) -> Iterator[Document]:
    """Yields documents of about so many characters, of ranges that are spread over a corpus.

    The last document of a range ends after the paragraph that completes its part of the sample.
    """
    numbers = np.linspace(0, len(ranges) - 1, _MOST_RANGES).astype(int) if ranges else []
    chosen = [ranges[number] for number in np.unique(numbers)]
    for text_range in chosen:
        left = characters / len(chosen)
        for document in read_range(text_range):
            count = 0
            while left > 0 and count < len(document.paragraphs):
                left -= len(document.paragraphs[count])
                count += 1
            yield replace(document, paragraphs=document.paragraphs[:count])
            if left <= 0:
                break
