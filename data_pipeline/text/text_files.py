"""Finds the text files of a corpus: files, folders and glob patterns, local or with a scheme.

Sources that do not exist and files that are not regular ones are errors that name them.
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


def find_files(sources) -> list[SourceFile]:
    """Finds the files of all sources: each once, sorted by name, then by path.

    Args:
        sources: list of str or Path, as in `read_corpus`.

    Returns:
        list of SourceFile.

    Raises:
        InputError: If a source does not exist, or contains or matches no file.
    """
    found: dict[str | Path, str] = {}
    for source in _as_list(sources):
        is_remote = storage.is_remote(source)
        for name, path in _files_of(source, is_remote):
            # A file found through several sources gets its longest name, whatever their order.
            real = path if is_remote else Path(path).resolve()
            found[real] = max(found.get(real, ""), name, key=lambda name: (len(name), name))
    if not found:
        raise InputError("`sources` must name at least one file. Received: none.")
    files = (SourceFile(name, path) for path, name in found.items())
    return sorted(files, key=lambda file: (file.name, PurePath(file.path)))


def listing(sources) -> str:
    """Returns the sources as text for a message."""
    return ", ".join(str(source) for source in _as_list(sources))


def _as_list(sources):
    return [sources] if isinstance(sources, (str, Path)) else list(sources)


def _files_of(source, is_remote):
    """Returns (name, path) of the files of one source, as strings."""
    walk = _walk_remote if is_remote else _walk
    top = source.rstrip("/") if is_remote else str(Path(source))
    if str(source) and storage.exists(top):
        if not storage.is_folder(top):
            return [(_relative(path, os.path.dirname(top)), path) for path in walk(top)]
        files = [(_relative(path, top), path) for path in walk(top)]
        if not files:
            raise InputError(f"The folder `{source}` contains no text files.")
        return files
    if not glob.has_magic(top):
        raise InputError(
            f"`{source}` does not exist. A source must be a file, a folder or a glob pattern."
        )
    if is_remote and "**" in top:
        raise InputError(
            f"`{source}` must not contain `**`, which works for local paths only. "
            "Name the folder instead: it is read recursively."
        )
    signs = top.split("/")
    matches = storage.matches(top)
    if is_remote:
        matches = [match for match in matches if not _is_hidden(match.split("/"), signs)]
    # Names start after the last part without a wildcard, as they would for that folder.
    root = "/".join(itertools.takewhile(lambda part: not glob.has_magic(part), signs))
    files = [(_relative(path, root), path) for match in matches for path in walk(match)]
    if not files:
        raise InputError(f"The pattern `{source}` matches no files.")
    return files


def _relative(path, folder):
    return path.removeprefix(folder).lstrip("/")


def _walk(top):
    """Yields the path of a local file, or the paths of a folder's files without hidden ones."""
    if not os.path.isdir(top):
        yield _checked(top)
        return
    visited = set()
    for folder, folders, files in os.walk(top, onerror=_refuse_folder, followlinks=True):
        real = os.path.realpath(folder)  # links may form a cycle
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield _checked(os.path.join(folder, name))


def _checked(path):
    if not os.path.isfile(path):
        raise InputError(f"`{path}` is not a regular file or a folder.")
    return path


def _refuse_folder(error):
    raise InputError(f"The folder `{error.filename}` cannot be read: {error.strerror}.")


def _walk_remote(top):
    """Yields the path of a file, or the paths of a folder's files without hidden ones."""
    if not storage.is_folder(top):
        yield top
        return
    for folder, folders, files in storage.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield f"{folder.rstrip('/')}/{name}"


def _is_hidden(parts, signs):
    """Returns whether a wildcard matched a hidden file or folder, which `glob.glob` ignores."""
    pairs = zip(parts, signs, strict=False)
    return any(part.startswith(".") and not sign.startswith(".") for part, sign in pairs)
