"""Decodes a stretch of a text file: bytes -> lines.

What is unreadable, binary or not UTF-8 is refused with file, byte and reason.
"""

import codecs
import io

from data_pipeline.errors import InputError
from data_pipeline.text import storage


def text_lines(path, max_chars=-1, begin=0, end=None):
    """Yields the lines of a UTF-8 file, LF at their ends (CRLF and CR are turned).

    Args:
        path: str or Path.
        max_chars: int. A longer line comes in pieces of this length; -1 never cuts.
        begin: int. Byte to start at: 0, or one that follows a LF.
        end: int or None. Byte to stop before; None reads the file to its end.

    Raises:
        InputError: If the file cannot be read, is binary, is not UTF-8, or is no longer what it
            was when `begin` and `end` were chosen.
    """
    try:
        with storage.open_to_read(path, max(0, begin - 1), end) as file:
            if begin and file.read(1) != b"\n":
                raise InputError(
                    f"`{path}` should stay as it is while it is read. "
                    f"No line starts at byte {begin} any more."
                )
            text = io.TextIOWrapper(file, encoding="utf-8")
            while line := text.readline(max_chars):
                if "\0" in line:
                    raise _not_utf8(path, begin, end)
                # A byte order mark stands at the start, or inside where files were joined.
                yield line.replace("\ufeff", "")
    except UnicodeDecodeError:
        raise _not_utf8(path, begin, end) from None


def lines_before(path, byte) -> int:
    """Counts the lines of a file that end before a byte, which follows a LF or is the first."""
    count, last = 0, b""
    with storage.open_to_read(path, 0, byte) as file:
        while chunk := file.read(storage.BUFFER_BYTES):
            count += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
            count -= last == b"\r" and chunk.startswith(b"\n")
            last = chunk[-1:]
    return count


def _not_utf8(path, begin, end):
    """Makes the error for a file with a NUL or a byte that is not UTF-8, whichever is first."""
    with storage.open_to_read(path) as file:
        head = file.read(1 << 12)
    decoder = codecs.getincrementaldecoder("utf-8")()
    with storage.open_to_read(path, begin, end) as file:
        offset, chunk = begin, b""
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
