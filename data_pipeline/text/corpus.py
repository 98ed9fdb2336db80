"""Reads text files of four formats into documents, streaming, whole or range by range.

Files come from `text_files.py`, their ranges from `text_ranges.py`, paragraphs from
`corpus_formats.py`; `Document` goes on to `sentences.py`.
"""

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from data_pipeline.errors import InputError
from data_pipeline.text.corpus_formats import (
    MAX_DOCUMENT_CHARS,
    check_format,
    cut_text,
    detect_format,
    paragraphs_of,
)
from data_pipeline.text.text_files import find_files, listing
from data_pipeline.text.text_ranges import TextRange, cut_file


@dataclass(frozen=True)
class Document:
    """One text, or one part of a long one.

    Attributes:
        name: str. Where it comes from, relative to the source given: "b/x.txt", "x.jsonl:12" for
            its line (with "sentences" for the 12th document), "x.jsonl:Mars" for its id or title,
            "b/x.txt#2" for a part. In a large file numbers start anew at places that are named by
            their byte: "b/x.txt@8388701#2", "x.jsonl@8388701:12". Two sources may hold the same
            name; `digest` tells them apart.
        paragraphs: tuple of str. Not empty, white space collapsed.
        sentences_given: bool. Whether each paragraph is one sentence already.
    """

    name: str
    paragraphs: tuple[str, ...]
    sentences_given: bool = False

    @property
    def text(self) -> str:
        """Returns the paragraphs, one per line."""
        return "\n".join(self.paragraphs)

    @property
    def digest(self) -> str:
        """Returns the content address of the text: 32 hexadecimal digits, blake2b."""
        return hashlib.blake2b(self.text.encode(), digest_size=16).hexdigest()


def read_corpus(sources, format="auto") -> Iterator[Document]:
    """Reads the documents of a corpus, whatever the order of its sources.

    Memory is bounded by one document part; for "jsonl" and "wikiextractor" also by one line.

    Args:
        sources: list of str or Path. Each a file, a folder (recursive, hidden files left out) or
            a glob pattern ("**" allowed; a folder it matches is read as a folder). A str with a
            scheme that TensorFlow knows ("gs://bucket/x*.txt") may be any of them too, but has
            no "**".
        format: str. "prose": one document per file, blank lines separate paragraphs, wrapped
            lines are joined; "sentences": one sentence per line, a blank line or the end of the
            file ends a document; "jsonl": one object with "text" per line, "id" or "title" name
            it; "wikiextractor": `<doc ...>` to `</doc>`; "auto": by extension and first line.

    Returns:
        Iterator of Document: those of all `corpus_ranges`, one range after the other.

    Raises:
        InputError: At once, if the format is unknown or a source is missing or holds no file. While
            reading, if a file cannot be read as UTF-8 text of its format, or if the whole corpus
            holds no text.

    Source:
        "sentences" is the input of google-research/albert, `create_pretraining_data.py`, which
        however lets the last document of a file run on into the next file.
    """
    check_format(format)
    return _documents(find_files(sources), format, listing(sources))


def _documents(files, format, sources):
    is_empty = True
    for file in files:
        for text_range in _ranges_of(file, format):
            for document in read_range(text_range):
                is_empty = False
                yield document
    if is_empty:
        raise InputError(f"The corpus is empty: no text in {sources}.")


def corpus_ranges(sources, format="auto") -> list[TextRange]:
    """Cuts a corpus into ranges that can be read on their own, by any process in any order.

    Args:
        sources: list of str or Path, as in `read_corpus`.
        format: str. As in `read_corpus`.

    Returns:
        list of TextRange. Sorted by name, path and begin. They depend on the files alone, and
        some may hold no text.

    Raises:
        InputError: If the format is unknown, a source is missing or holds no file, or a file cannot
            be read.
    """
    check_format(format)
    return [part for file in find_files(sources) for part in _ranges_of(file, format)]


def _ranges_of(file, format):
    return cut_file(file, detect_format(file.path) if format == "auto" else format)


def read_range(text_range) -> Iterator[Document]:
    """Yields the documents of one range of a corpus; memory is bounded as in `read_corpus`.

    Args:
        text_range: TextRange.

    Raises:
        InputError: If the file cannot be read as UTF-8 text of its format, or has changed since it
            was cut so that the range is gone. Lines and bytes are counted from the file's start.
    """
    sentences_given = text_range.format == "sentences"
    for (_, name), group in itertools.groupby(paragraphs_of(text_range), key=lambda pair: pair[0]):
        yield from _parts(name, (paragraph for _, paragraph in group), sentences_given)


def _parts(name, paragraphs, sentences_given):
    """Yields a document, or numbered parts of it cut at the edges of paragraphs."""
    held, size, number = [], 0, 1
    cleaned = (" ".join(paragraph.split()) for paragraph in paragraphs)
    for paragraph in itertools.chain.from_iterable(cut_text(text) for text in cleaned if text):
        if held and size + len(paragraph) > MAX_DOCUMENT_CHARS:
            yield Document(f"{name}#{number}", tuple(held), sentences_given)
            held, size, number = [], 0, number + 1
        held.append(paragraph)
        size += len(paragraph) + 1
    if held:
        yield Document(name if number == 1 else f"{name}#{number}", tuple(held), sentences_given)
