"""Finds the text files of a corpus: sources -> files, here or behind a scheme (`gs://`).

What is missing or no regular file is refused by name.
"""

import glob
import itertools
import os
from pathlib import Path, PurePath
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.text import storage


class SourceFile(NamedTuple):
    """A file of a corpus.

    Attributes:
        name: str. Relative to the source it was found in.
        path: Path, or str if it has a scheme.
    """

    name: str
    path: Path | str


def find_files(sources):
    """Lists the files of all sources: each once, sorted by name, then by path.

    Args:
        sources: list of str or Path, as in `read_corpus`.

    Returns:
        list of SourceFile.

    Raises:
        InputError: If a source is missing, or holds or matches no file.
    """
    found = {}
    for source in _as_list(sources):
        files = _remote_files_of if storage.is_remote(source) else _files_of
        for name, path in files(source):
            # Named through several sources, a file keeps its longest name, whatever their order.
            real = path if storage.is_remote(path) else path.resolve()
            kept = found.setdefault(real, name)
            found[real] = max(kept, name, key=lambda name: (len(name), name))
    if not found:
        raise InputError("`sources` should name at least one file. Received: none.")
    files = (SourceFile(name, path) for path, name in found.items())
    return sorted(files, key=lambda file: (file.name, PurePath(file.path)))


def _as_list(sources):
    return [sources] if isinstance(sources, (str, Path)) else list(sources)


def listing(sources):
    """Words the sources for a message."""
    return ", ".join(str(source) for source in _as_list(sources))


def _files_of(source):
    path = Path(source)
    if str(source) and path.exists():
        return [(path.name, path)] if path.is_file() else list(_walk(path, path))
    if not glob.has_magic(str(source)):
        raise _missing(source)
    matches = [Path(match) for match in storage.matches(str(source))]
    # Names start after the last part without a wildcard, as they would for that folder.
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
    root = Path(*plain)
    files = [file for match in matches for file in _walk(match, root)]
    if not files:
        raise _no_match(source)
    return files


def _walk(top, root):
    """Yields (name relative to `root`, path) of a file or of a folder's files."""
    if top.is_file():
        yield top.relative_to(root).as_posix(), top
        return
    if not top.is_dir():
        raise InputError(f"`{top}` should be a regular file or a folder. It is neither.")
    found, visited = False, set()
    for folder, folders, files in os.walk(top, onerror=_refuse_folder, followlinks=True):
        real = os.path.realpath(folder)  # links may lead in a circle
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                path, found = Path(folder, name), True
                if not path.is_file():
                    raise InputError(f"`{path}` should be a regular file. It is none.")
                yield path.relative_to(root).as_posix(), path
    if top == root and not found:
        raise _no_files(top)


def _refuse_folder(error):
    raise InputError(f"The folder `{error.filename}` cannot be read: {error.strerror}.")


def _remote_files_of(source):
    top = source.rstrip("/")
    if storage.exists(top):
        if not storage.is_folder(top):
            return [(top.rpartition("/")[2], top)]
        files = [(path[len(top) + 1 :], path) for path in _remote_walk(top)]
        if not files:
            raise _no_files(source)
        return files
    if not glob.has_magic(top):
        raise _missing(source)
    if "**" in top:
        raise InputError(
            f"`{source}` should have no `**`: behind a scheme there is none. "
            "Name the folder, it is read with all folders in it."
        )
    parts = top.split("/")
    root = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), parts))
    found = [match for match in storage.matches(top) if not _is_hidden(match.split("/"), parts)]
    files = [(path[len(root) + 1 :], path) for match in found for path in _remote_walk(match)]
    if not files:
        raise _no_match(source)
    return files


def _remote_walk(top):
    """Yields the path of a file or of a folder's files, hidden ones left out."""
    if not storage.is_folder(top):
        yield top
        return
    for folder, folders, files in storage.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield f"{folder.rstrip('/')}/{name}"


def _is_hidden(parts, signs):
    """Tells whether a wildcard stands for a hidden file or folder, which `glob.glob` leaves out."""
    pairs = zip(parts, signs, strict=False)
    return any(part.startswith(".") and not sign.startswith(".") for part, sign in pairs)


def _missing(source):
    return InputError(f"`{source}` should be a file, a folder or a glob pattern. It is missing.")


def _no_match(source):
    return InputError(f"The pattern `{source}` should match files. It matches none.")


def _no_files(folder):
    return InputError(f"The folder `{folder}` should hold text files. It holds none.")
