"""Finds the text files of a corpus, and splits large ones into ranges to read in any order.

A source that does not exist and a file that is not a regular one are errors that name them.

The edges of ranges depend on the bytes of the file alone, so the documents are the same for any
number of readers. An edge is a position where nothing of the format continues across it:

    jsonl          after a line end
    sentences      after a blank line: no document continues across it; so for paragraphs
    documents      after a line end
    prose          after a blank line or one too long to be wrapped: no paragraph continues across
                   it, but the document part ends there
    wikiextractor  before a line that starts with a `<doc ...>` tag
"""

import glob
import itertools
import os
import re
from pathlib import Path, PurePath
from typing import NamedTuple

from data_pipeline.errors import InputError, Mistake
from data_pipeline.text import storage
from data_pipeline.text.corpus_formats import MAX_WRAPPED_CHARS

#: An edge is searched for from each multiple of this. Files up to this size are one range.
RANGE_BYTES = 8 << 20

#: Bytes of a line that are examined; a longer line counts as text.
_LINE_HEAD_BYTES = 1 << 14
# What the reader of this format certainly recognises as a tag, also with ">" in its title.
_DOC_TAG = re.compile(rb"<doc [^<>\r\n]*>")


class SourceFile(NamedTuple):
    """A file of a corpus."""

    name: str  # relative to the source it was found in
    path: Path | str  # str if it has a scheme


class TextRange(NamedTuple):
    """A part of a text file that can be read without the rest."""

    name: str  # of the SourceFile
    path: Path | str
    begin: int  # first byte
    end: int  # one more than the last byte
    format: str  # one of the formats of `read_corpus`
    state: tuple[int, int]  # of the whole file, see `storage.state_of`

    @property
    def num_bytes(self) -> int:
        return self.end - self.begin

    @property
    def label(self) -> str:
        """Returns the name of its documents: "b.txt", or "b.txt@8388701" for a later range."""
        return f"{self.name}@{self.begin}" if self.begin else self.name


def find_files(sources) -> list[SourceFile]:
    """Finds the files of all sources (as in `read_corpus`): each once, sorted by name, then path.

    Raises InputError if a source does not exist, or contains or matches no file.
    """
    found: dict[str | Path, str] = {}
    for source in _as_list(sources):
        is_remote = storage.is_remote(source)
        for name, path in _files_of(source, is_remote):
            if not is_remote and not os.path.isfile(path):
                raise InputError(f"`{path}` is not a regular file or a folder.")
            # A file found through several sources gets its longest name, whatever their order.
            real = path if is_remote else Path(path).resolve()
            found[real] = max(found.get(real, ""), name, key=lambda name: (len(name), name))
    if not found:
        raise InputError("`sources` must name at least one file. Received: none.")
    files = (SourceFile(name, path) for path, name in found.items())
    return sorted(files, key=lambda file: (file.name, PurePath(file.path)))


def corpus_bytes(sources) -> int:
    """Returns the size of all files of a corpus; raises InputError as `find_files` does."""
    return sum(storage.size_of(file.path) for file in find_files(sources))


def listing(sources) -> str:
    """Returns the sources as text for a message."""
    return ", ".join(str(source) for source in _as_list(sources))


def _as_list(sources):
    return [sources] if isinstance(sources, (str, Path)) else list(sources)


def _files_of(source, is_remote):
    """Returns (name, path) of the files of one source, as strings."""
    top = source.rstrip("/") if is_remote else str(Path(source))
    if str(source) and storage.exists(top):
        root = top if storage.is_folder(top) else os.path.dirname(top)
        files = [(_relative(path, root), path) for path in _walk(top)]
        if not files:
            raise InputError(f"The folder `{source}` contains no text files.")
        return files
    if is_remote or not glob.has_magic(top):
        raise InputError(
            f"`{source}` does not exist. A source must be a file, a folder or a glob pattern, and "
            "a URL a file or a folder.",
            Mistake.CORPUS_NOT_FOUND,
        )
    # Names start after the last part without a wildcard, as they would for that folder.
    root = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), top.split("/")))
    matches = sorted(glob.glob(top, recursive=True))
    files = [(_relative(path, root), path) for match in matches for path in _walk(match)]
    if not files:
        raise InputError(f"The pattern `{source}` matches no files.")
    return files


def _relative(path, folder):
    return path.removeprefix(folder).lstrip("/")


def _walk(top):
    """Yields the path of a file, or the paths of a folder's files without hidden ones."""
    if not storage.is_folder(top):
        yield top
        return
    visited = set()
    for folder, folders, files in storage.walk(top):
        real = folder if storage.is_remote(folder) else os.path.realpath(folder)
        if real in visited:  # links may form a cycle
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            if not name.startswith("."):
                yield f"{folder.rstrip('/')}/{name}"


def split_file(file: SourceFile, format: str) -> list[TextRange]:
    """Splits a file near each multiple of `RANGE_BYTES`, into at least one range.

    Only the bytes from each multiple to the next possible edge are read. If there is none before
    the next multiple, the range is longer. Raises InputError if the file cannot be read.
    """
    size, changed_at = storage.state_of(file.path)
    starts = range(RANGE_BYTES, size, RANGE_BYTES)
    found = (_first_edge(file.path, format, start, size) for start in starts)
    edges = [0, *(edge for edge in found if edge is not None), size]
    return [
        TextRange(file.name, file.path, begin, end, format, (size, changed_at))
        for begin, end in itertools.pairwise(edges)
    ]


def _first_edge(path, format, begin, size):
    """Returns the first edge between a multiple of `RANGE_BYTES` and the next, or None."""
    end = min(begin + RANGE_BYTES, size)
    with storage.open_to_read(path, begin - 1, min(end + _LINE_HEAD_BYTES, size)) as file:
        start = begin - 1 + _skip_line(file)  # of the first line that starts at `begin` or later
        while start < end:
            if format in ("jsonl", "documents"):
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
