"""Reads text files of several formats into documents, and splits off and writes some of them.

Files and their ranges come from `text_files`, paragraphs from `corpus_formats`; `sentences` splits
the documents.
"""

import hashlib
import itertools
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import whole_text
from data_pipeline.progress import CountedProgress
from data_pipeline.text.corpus_formats import (
    MAX_DOCUMENT_CHARS,
    check_format,
    detect_format,
    paragraphs_of,
    split_long_text,
)
from data_pipeline.text.storage import state_of
from data_pipeline.text.text_files import TextRange, corpus_bytes, find_files, listing, split_file

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Document:
    """One text, or one part of a long text.

    Attributes:
        name: str. Where it comes from, relative to its source: "b/x.txt", "x.jsonl:12" for a line
            (in the format "sentences" for the 12th document), "x.jsonl:Mars" for an id or title,
            "b/x.txt#2" for a part. In a large file, numbers start again at each range, which is
            named by its first byte: "b/x.txt@8388701#2", "x.jsonl@8388701:12". Documents of two
            sources may have the same name, but not the same `digest`, unless their texts agree.
        paragraphs: tuple of str. Not empty, white space collapsed.
        sentences_given: bool. Whether each paragraph is already a single sentence.
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


def read_corpus(
    sources: str | Path | Iterable[str | Path], format: str = "auto"
) -> Iterator[Document]:
    """Reads the documents of a corpus, in an order that the order of its sources does not change.

    Memory is bounded by one document part; for "jsonl", "documents" and "wikiextractor" also by one
    line.

    Args:
        sources: list of str or Path. Each a file, a folder (recursive, without hidden files) or a
            glob pattern ("**" allowed; a folder that it matches is read as a folder). A str with
            a scheme supported by TensorFlow ("gs://bucket/text") may be a file or a folder.
        format: str. "prose": one document per file, blank lines separate paragraphs, wrapped
            lines are joined; "sentences": one sentence per line, a blank line or the end of the
            file ends a document; "paragraphs": the same with a paragraph per line, as in CC-100;
            "documents": one document per line; "jsonl": one object with "text" per line,
            named by its "id" or "title"; "wikiextractor": `<doc ...>` to `</doc>`; "auto": "jsonl",
            "wikiextractor" or "prose", by extension and first line.

    Returns:
        Iterator of Document: the documents of all `corpus_ranges`, one range after the other.

    Raises:
        InputError: When called, if the format is unknown or a source is missing or contains no
            file. While reading, if a file is not UTF-8 text of its format, or if the whole corpus
            contains no text.

    Source:
        "sentences" is the input of google-research/albert, `create_pretraining_data.py`. There,
        however, the last document of a file continues in the next file.
    """
    check_format(format)
    return _documents(find_files(sources), format, listing(sources))


def read_with_progress(
    sources: str | Path | Iterable[str | Path], format: str = "auto"
) -> Iterator[Document]:
    """Yields the documents of `read_corpus`, and logs how much is read and the remaining time.

    It raises the same errors as `read_corpus`.
    """
    sources = [sources] if isinstance(sources, str | Path) else list(sources)
    progress = CountedProgress(logger, "reading", corpus_bytes(sources) / 1e6, "MB")
    for document in read_corpus(sources, format):
        yield document
        progress.add(len(document.text.encode()) / 1e6)


def _documents(files, format, sources):
    is_empty = True
    for file in files:
        for text_range in _ranges_of(file, format):
            for document in read_range(text_range):
                is_empty = False
                yield document
    if is_empty:
        raise InputError(
            f"The corpus is empty. It contains no text: {sources}.", Mistake.EMPTY_CORPUS
        )


def corpus_ranges(sources, format: str = "auto") -> list[TextRange]:
    """Splits a corpus, given as in `read_corpus`, into ranges that can be read in any order.

    They depend on the files alone, and are sorted by name, path and begin. A range may contain no
    text. Raises InputError as `read_corpus` does when called, and if a file cannot be read.
    """
    check_format(format)
    return [part for file in find_files(sources) for part in _ranges_of(file, format)]


def _ranges_of(file, format):
    return split_file(file, detect_format(file.path) if format == "auto" else format)


def read_range(text_range: TextRange) -> Iterator[Document]:
    """Yields the documents of one range of a corpus; memory is bounded as in `read_corpus`.

    Raises InputError if the file is not UTF-8 text of its format, or has changed since it was
    split. Lines and bytes are counted from the file's start.
    """
    sentences_given = text_range.format == "sentences"
    paragraphs = itertools.groupby(paragraphs_of(text_range), key=lambda pair: pair[0])
    try:
        for (_, name), group in paragraphs:
            yield from _document_parts(name, (paragraph for _, paragraph in group), sentences_given)
    except InputError:  # half of a line that was being written is no text of its format
        _check_is_unchanged(text_range)
        raise
    _check_is_unchanged(text_range)


def _check_is_unchanged(text_range):
    if state_of(text_range.path) != text_range.state:
        raise InputError(
            f"`{text_range.path}` must not change while it is read. It has been written to. Repeat "
            "the command when it is complete, or give a copy of it."
        )


def _document_parts(name, paragraphs, sentences_given):
    """Yields a document, or numbered parts of a long one, split between paragraphs."""
    part, size, number = [], 0, 1
    cleaned = (" ".join(paragraph.split()) for paragraph in paragraphs)
    shortened = (split_long_text(text) for text in cleaned if text)
    for paragraph in itertools.chain.from_iterable(shortened):
        if part and size + len(paragraph) > MAX_DOCUMENT_CHARS:
            yield Document(f"{name}#{number}", tuple(part), sentences_given)
            part, size, number = [], 0, number + 1
        part.append(paragraph)
        size += len(paragraph) + 1
    if part:
        yield Document(name if number == 1 else f"{name}#{number}", tuple(part), sentences_given)


def split_heldout(documents, fraction: float = 0.05) -> tuple[list[Document], list[Document]]:
    """Splits documents into a training part and a held-out part.

    The digest of a document decides, so neither its position nor other documents matter, except
    that each part gets at least one text. Both keep the order received. `fraction`, between 0 and
    1, is the expected fraction of held-out documents.

    Raises InputError if it is out of range, or there are fewer than two different texts.
    """
    if not 0 < fraction < 1:
        raise InputError(f"`fraction` must be between 0 and 1. Received: {fraction}.")
    documents = list(documents)
    digests = [document.digest for document in documents]
    ranked = sorted(set(digests))
    if len(ranked) < 2:
        raise InputError("A held-out part needs at least two different documents.")
    limit = f"{int(fraction * 16**8):08x}"
    # The bounds keep one text in either part of a small corpus.
    limit = min(max(limit, ranked[1]), ranked[-1])
    train = [item for item, digest in zip(documents, digests, strict=True) if digest >= limit]
    heldout = [item for item, digest in zip(documents, digests, strict=True) if digest < limit]
    return train, heldout


def write_jsonl(documents: Iterable[Document], path: str | Path) -> None:
    """Writes documents as JSON lines for `read_corpus`: the complete file or none.

    "id" is the name, "text" the paragraphs, one per line. An older file is replaced. Raises
    InputError if there is no document, or `path` cannot be written.
    """
    try:
        with whole_text(path) as file:
            for document in documents:
                record = {"id": document.name, "text": document.text}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            if not file.tell():
                raise InputError(f"`{path}` cannot be written: there is no document.")
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}.") from error
