"""Cuts large text files into ranges that can be read on their own, in any order.

Where a file is cut follows from its bytes alone, so the documents are the same whoever reads them
and however many do. A cut stands where the format lets go of everything before it:

    jsonl          behind a line end
    sentences      behind a blank line: no document goes on across it
    prose          behind a blank line or one too long to be wrapped: no paragraph goes on across
                   it, but the document part ends there
    wikiextractor  before a line that starts with a `<doc ...>` tag
"""

import re
from pathlib import Path
from typing import NamedTuple

from data_pipeline.text import storage
from data_pipeline.text.corpus_formats import MAX_WRAPPED_CHARS

#: A cut is looked for at each multiple of this. Files up to this size stay whole.
RANGE_BYTES = 8 << 20

#: Looked at of a line; one that is longer is taken for text.
_LINE_HEAD_BYTES = 1 << 14
# What surely is a tag to the reader of this format, titles that hold ">" included.
_DOC_TAG = re.compile(rb"<doc [^<>\r\n]*>")


class TextRange(NamedTuple):
    """A stretch of a text file that can be read without the rest.

    Attributes:
        name: str. The file's name, relative to the source it was found in.
        path: Path, or str if it has a scheme.
        begin: int. First byte.
        end: int. Byte behind the last.
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
    def place(self) -> str:
        """Returns what documents are named by: "b.txt", or "b.txt@8388701" behind a cut."""
        return f"{self.name}@{self.begin}" if self.begin else self.name


def cut_file(file, format) -> list[TextRange]:
    """Cuts a file near each multiple of `RANGE_BYTES`.

    Reads little: from each multiple on to the next good place. Where there is none before the next
    multiple, that cut is left out and the range is longer.

    Args:
        file: SourceFile.
        format: str. As in `TextRange`.

    Returns:
        list of TextRange. At least one; together they are the whole file.

    Raises:
        InputError: If the file cannot be read.
    """
    size = storage.size_of(file.path)
    cuts = [0]
    for begin in range(RANGE_BYTES, size, RANGE_BYTES):
        cut = _first_cut(file.path, format, begin, size)
        if cut is not None:
            cuts.append(cut)
    edges = zip(cuts, [*cuts[1:], size], strict=True)
    return [TextRange(file.name, file.path, begin, end, format) for begin, end in edges]


def _first_cut(path, format, begin, size):
    """Finds the first place to cut between a multiple of `RANGE_BYTES` and the next, or None."""
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
    """Reads to the end of the line; returns how many bytes that were."""
    count = 0
    while piece := file.readline(_LINE_HEAD_BYTES):
        count += len(piece)
        if piece.endswith(b"\n"):
            break
    return count


def _ends_paragraph(line, format):
    """Tells whether nothing goes on behind a line, as the readers see it."""
    text = line.decode("utf-8", "replace").replace("\ufeff", "").strip()
    return not text or (format == "prose" and len(text) > MAX_WRAPPED_CHARS)
