"""Splits large text files into ranges that can be read independently, in any order.

The edges depend on the bytes of the file alone, so the documents are the same for any number of
readers. An edge is a position where nothing of the format continues across it:

    jsonl          after a line end
    sentences      after a blank line: no document continues across it
    prose          after a blank line or one too long to be wrapped: no paragraph continues across
                   it, but the document part ends there
    wikiextractor  before a line that starts with a `<doc ...>` tag
"""

import itertools
import re
from pathlib import Path
from typing import NamedTuple

from data_pipeline.text import storage
from data_pipeline.text.corpus_formats import MAX_WRAPPED_CHARS

#: An edge is searched for from each multiple of this. Files up to this size are one range.
RANGE_BYTES = 8 << 20

#: Bytes of a line that are examined; a longer line counts as text.
_LINE_HEAD_BYTES = 1 << 14
# What the reader of this format certainly recognises as a tag, also with ">" in its title.
_DOC_TAG = re.compile(rb"<doc [^<>\r\n]*>")


class TextRange(NamedTuple):
    """A part of a text file that can be read without the rest.

    Attributes:
        name: str. The file's name, relative to the source it was found in.
        path: Path, or str if it has a scheme.
        begin: int. First byte.
        end: int. One more than the last byte.
        format: str. "prose", "sentences", "jsonl" or "wikiextractor".
    """

    name: str
    path: Path | str
    begin: int
    end: int
    format: str

    @property
    def num_bytes(self) -> int:
        """Returns the size of the range."""
        return self.end - self.begin

    @property
    def label(self) -> str:
        """Returns the name of its documents: "b.txt", or "b.txt@8388701" for a later range."""
        return f"{self.name}@{self.begin}" if self.begin else self.name


def split_file(file, format) -> list[TextRange]:
    """Splits a file near each multiple of `RANGE_BYTES`.

    Only the bytes from each multiple to the next possible edge are read. If there is none before
    the next multiple, the range is longer.

    Args:
        file: SourceFile.
        format: str. As in `TextRange`.

    Returns:
        list of TextRange. At least one; together they cover the whole file.

    Raises:
        InputError: If the file cannot be read.
    """
    size = storage.size_of(file.path)
    starts = range(RANGE_BYTES, size, RANGE_BYTES)
    found = (_first_edge(file.path, format, start, size) for start in starts)
    edges = [0, *(edge for edge in found if edge is not None), size]
    return [
        TextRange(file.name, file.path, begin, end, format)
        for begin, end in itertools.pairwise(edges)
    ]


def _first_edge(path, format, begin, size):
    """Returns the first edge between a multiple of `RANGE_BYTES` and the next, or None."""
    end = min(begin + RANGE_BYTES, size)
    with storage.open_to_read(path, begin - 1, min(end + _LINE_HEAD_BYTES, size)) as file:
        start = begin - 1 + _skip_line(file)  # of the first line that starts at `begin` or later
        while start < end:
            if format == "jsonl":
                return start
            head = file.readline(_LINE_HEAD_BYTES)
            if format == "wikiextractor" and _DOC_TAG.match(head):
                return start
            start += len(head)
            if not head.endswith(b"\n"):
                start += _skip_line(file)
            elif format != "wikiextractor" and start < end and _ends_paragraph(head, format):
                return start
    return None


def _skip_line(file):
    """Reads to the end of the line; returns the number of bytes read."""
    count = 0
    while part := file.readline(_LINE_HEAD_BYTES):
        count += len(part)
        if part.endswith(b"\n"):
            break
    return count


def _ends_paragraph(line, format):
    """Returns whether no paragraph continues after a line, by the rules of the readers."""
    text = line.decode("utf-8", "replace").replace("\ufeff", "").strip()
    return not text or (format == "prose" and len(text) > MAX_WRAPPED_CHARS)
