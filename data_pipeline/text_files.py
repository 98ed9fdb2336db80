"""Finds the text files of a corpus and decodes them: sources -> files -> lines.

What is missing, unreadable, binary or not UTF-8 is refused with file, byte and reason.
"""

import codecs
import glob
import itertools
import os
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError


class SourceFile(NamedTuple):
    """A file of a corpus: its `name` relative to the source it was found in, and its `path`."""

    name: str
    path: Path


def find_files(sources):
    """Lists the files of all sources: each once, sorted by name, then by path.

    Args:
        sources: list of str or Path, as in `read_corpus`.

    Returns:
        list of SourceFile.

    Raises:
        InputError: If a source is missing, or holds or matches no file.
    """
    names = {}
    for source in _as_list(sources):
        for name, path in _files_of(source):
            # Named through several sources, a file keeps its longest name, whatever their order.
            kept = names.setdefault(path.resolve(), name)
            names[path.resolve()] = max(kept, name, key=lambda name: (len(name), name))
    if not names:
        raise InputError("`sources` should name at least one file. Received: none.")
    return sorted(SourceFile(name, path) for path, name in names.items())


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
        raise InputError(f"`{source}` should be a file, a folder or a glob pattern. It is missing.")
    matches = [Path(match) for match in glob.glob(str(source), recursive=True)]
    # Names start after the last part without a wildcard, as they would for that folder.
    plain = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts)
    root = Path(*plain)
    files = [file for match in matches for file in _walk(match, root)]
    if not files:
        raise InputError(f"The pattern `{source}` should match files. It matches none.")
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
        raise InputError(f"The folder `{top}` should hold text files. It holds none.")


def _refuse_folder(error):
    raise InputError(f"The folder `{error.filename}` cannot be read: {error.strerror}.")


def text_lines(path, max_chars=-1):
    """Yields the lines of a UTF-8 file, LF at their ends (CRLF and CR are turned).

    Args:
        path: Path.
        max_chars: int. A longer line comes in pieces of this length; -1 never cuts.

    Raises:
        InputError: If the file cannot be read, is binary, or is not UTF-8.
    """
    try:
        with open(path, encoding="utf-8") as file:
            while line := file.readline(max_chars):
                if "\0" in line:
                    raise _not_utf8(path)
                # A byte order mark stands at the start, or inside where files were joined.
                yield line.replace("\ufeff", "")
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from None


def _not_utf8(path):
    """Makes the error for a file with a NUL or a byte that is not UTF-8, whichever is first."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open(path, "rb") as file:
        head = file.read(1 << 12)
        file.seek(0)
        offset, chunk = 0, b""
        while True:
            offset += len(chunk) - len(decoder.getstate()[0])
            chunk = decoder.getstate()[0] + file.read(1 << 16)
            decoder.reset()
            try:
                decoder.decode(chunk, final=not chunk)
                bad = None
            except UnicodeDecodeError as error:
                bad = error.start
            nul = chunk.find(b"\0")
            if 0 <= nul and (bad is None or nul < bad):
                return _explain_bytes(path, head, chunk, offset, nul)
            if bad is not None:
                return _explain_bytes(path, head, chunk, offset, bad)
            if len(chunk) == len(decoder.getstate()[0]):  # the file ends inside a character
                return InputError(
                    f"`{path}` should be UTF-8. It ends inside a character, at byte {offset}."
                )


def _explain_bytes(path, head, chunk, offset, position):
    encoding = _likely_encoding(head, chunk, position)
    if encoding is None and chunk[position] == 0:
        return InputError(
            f"`{path}` should be text. It has a NUL byte at byte {offset + position}: binary?"
        )
    hint = ""
    if encoding:
        hint = f" It looks like {encoding}: try `iconv -f {encoding} -t UTF-8`."
    place = f"Byte {offset + position} (0x{chunk[position]:02x})"
    return InputError(f"`{path}` should be UTF-8. {place} is not.{hint}")


def _likely_encoding(head, chunk, position):
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "UTF-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "UTF-16"
    # Without a mark: Latin letters leave 3 of 4 bytes zero in UTF-32, every second in UTF-16.
    for width, encoding in ((4, "UTF-32"), (2, "UTF-16")):
        zeros = [head[start::width].count(0) for start in range(width)]
        if len(head) >= 2 * width and sum(zeros) > len(head) * (width - 1) / width * 0.8:
            order = "BE" if zeros[0] > zeros[-1] else "LE"
            return f"{encoding}{order}"
    # A lone high byte after pure ASCII; once real UTF-8 has been seen, it is plain damage.
    is_continued = 0x80 <= (chunk[position + 1 : position + 2] or b" ")[0] < 0xC0
    is_letter = chunk[position] >= 0xA0 and not is_continued
    return "Latin-1" if is_letter and chunk[:position].isascii() else None
