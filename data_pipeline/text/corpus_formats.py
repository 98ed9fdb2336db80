"""Reads the formats of text: a range of a file -> paragraphs, each with its document.

Nothing is skipped silently: what is unreadable, binary, not UTF-8 or not of its format is an error
with file, line or byte, and reason.
"""

import codecs
import html
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import PurePath

from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import parse_json
from data_pipeline.settings import did_you_mean
from data_pipeline.text import storage

#: Longer documents are split into parts, so that shuffling and hold-out work on books too.
MAX_DOCUMENT_CHARS = 50_000
#: Longest line of the formats whose lines cannot be read in parts, and so a bound of the memory.
MAX_LINE_CHARS = 1 << 24
#: A longer line is not a wrapped one: it is a paragraph of its own.
MAX_WRAPPED_CHARS = 120

_SENTENCE_END = re.compile(r"[.!?][\"')\]’”]*\s|[。！？][」』”’]*")
# Scripts written without spaces: Han, kana, their punctuation and full-width forms; not Hangul.
UNSPACED = "\u2e80-\u30ff\u31c0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
#: These, Thai, Lao, Burmese and Khmer.
UNSPACED_SCRIPTS = UNSPACED + "\u0e00-\u109f\u1780-\u17ff"
_UNSPACED_BREAK = re.compile(f"(?<=[{UNSPACED}])\n(?=[{UNSPACED}])")
_DOC_LINE = re.compile(r"<doc\s[^<]*>")
_DOC_TAG = re.compile(r"(<doc\s[^>]*>|</doc>)")
_DOC_TITLE = re.compile(r'\b(?:id|title)="([^"]+)"')
#: Keys of the JSON lines that WikiExtractor writes, in which `<` and `&` are escaped.
_WIKIEXTRACTOR_KEYS = {"id", "url", "title", "text"}
#: NUL, and what "surrogateescape" makes of bytes that are not UTF-8.
_NOT_UTF8 = re.compile("[\0\udc80-\udcff]")
_JSON_WITH_TEXT = re.compile(r'\{.*"text"\s*:\s*"')


def check_format(format):
    """Raises InputError if the name of a format is unknown."""
    names = [*_READERS, "auto"]
    if format not in names:
        raise InputError(f"`format={format}` is unknown{did_you_mean(format, names)}")


def detect_format(path) -> str:
    """Returns the format of a file, decided by its extension or else its first line with text."""
    if PurePath(path).suffix.lower() in (".jsonl", ".json", ".ndjson"):
        return "jsonl"
    lines = (line.lstrip() for line in _text_lines(path, MAX_DOCUMENT_CHARS))
    first = next(filter(None, lines), "")
    if first.startswith("<doc "):
        return "wikiextractor"
    return "jsonl" if _JSON_WITH_TEXT.match(first) else "prose"


def paragraphs_of(text_range) -> Iterator[tuple[tuple[int, str], str]]:
    """Yields the paragraphs of a TextRange, each after the number and name of its document.

    A paragraph has its original white space and may be blank. Raises InputError if the range is
    not UTF-8 text of its format.
    """
    return _READERS[text_range.format](text_range)


def split_long_text(text: str, max_chars: int = MAX_DOCUMENT_CHARS) -> list[str]:
    """Splits an overlong text after a sentence, else at white space, else anywhere.

    The last part may be empty.
    """
    start, parts = 0, []
    while len(text) - start > max_chars:
        middle, limit = start + max_chars // 2, start + max_chars
        ends = [match.end() for match in _SENTENCE_END.finditer(text, middle, limit)]
        space = text.rfind(" ", middle, limit) + 1
        end = ends[-1] if ends else space or limit
        parts.append(text[start:end].strip())
        start = end
    return [*filter(None, parts), text[start:]]


# Formats


def _prose(text_range):
    """Joins wrapped lines to paragraphs, and splits a paragraph that becomes too long."""
    document = (0, text_range.label)
    block, size = [], 0
    for line in _bounded_lines(text_range):
        text = line.strip()
        if text and len(text) <= MAX_WRAPPED_CHARS:
            block.append(text)
            size += len(text) + 1
            if size > MAX_DOCUMENT_CHARS:
                *full, rest = split_long_text(_join(block))
                block, size = [rest], len(rest)
                yield from ((document, paragraph) for paragraph in full)
        else:
            if block:
                yield document, _join(block)
            if text:
                yield document, text
            block, size = [], 0
    if block:
        yield document, _join(block)


def _join(lines):
    return _UNSPACED_BREAK.sub("", "\n".join(lines)).replace("\n", " ")


def _blocks_of_lines(text_range):
    """Yields each line as a paragraph; a blank line ends a document."""
    number, is_open = 0, False
    for line in _bounded_lines(text_range):
        if not line.strip():
            is_open = False
            continue
        if not is_open:
            number, is_open = number + 1, True
        yield (number, f"{text_range.label}:{number}"), line


def _lines_alone(text_range):
    """Yields each line as the only paragraph of a document."""
    for number, line in _whole_lines(text_range):
        yield (number, f"{text_range.label}:{number}"), line


def _jsonl(text_range):
    for number, line in _whole_lines(text_range):
        if not line.strip():
            continue
        try:
            text, title = _parse(line)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            fault = f' must be a JSON object with a string "text", without NUL: {error}.'
            raise _line_error(text_range, number, fault) from error
        document = (number, _document_name(text_range, title, number))
        yield from ((document, part) for part in re.split(r"\r\n?|\n", text))


def _parse(line):
    """Returns the text of a JSON object, and its id or title."""
    record = parse_json(line)
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str) or "\0" in text:
        raise ValueError(f"received {record!r:.60}")
    title = record.get("id") or record.get("title")
    f"{text}{title}".encode()  # fails for halves of surrogate pairs, which JSON allows
    return html.unescape(text) if record.keys() >= _WIKIEXTRACTOR_KEYS else text, title


def _wikiextractor(text_range):
    document = None
    for number, line in _whole_lines(text_range):
        line = line.strip()
        # A title may contain ">", so a line that is nothing but a tag is not split.
        for part in [line] if _DOC_LINE.fullmatch(line) else _split_at_tags(line):
            if _DOC_LINE.fullmatch(part):
                if document:
                    raise _line_error(text_range, document[0], ": `<doc>` is not closed.")
                title = _DOC_TITLE.search(part)
                document = (number, _document_name(text_range, title and title[1], number))
            elif part == "</doc>":
                if not document:
                    raise _line_error(text_range, number, ": `</doc>` has no opening `<doc>`.")
                document = None
            elif part.strip():
                if not document:
                    raise _line_error(text_range, number, ": there is text outside of `<doc>`.")
                yield document, html.unescape(part)  # WikiExtractor escapes `<` and `&`
    if document:
        raise _line_error(text_range, document[0], ": `<doc>` is not closed.")


def _split_at_tags(line):
    """Splits a line at its tags, which are parts of their own, in linear time."""
    # After the last ">" there is no tag, but each "<doc " would be searched to the end of the line.
    end = line.rfind(">") + 1
    *parts, last = _DOC_TAG.split(line[:end])
    return [*parts, last + line[end:]]


def _document_name(text_range, title, number):
    """Names a document by its own title, or by the line it starts at, counted in the range."""
    if isinstance(title, str | int):
        return f"{text_range.name}:{title}"
    return f"{text_range.label}:{number}"


def _line_error(text_range, number, fault):
    """Returns the error for a line of a range, counting the lines before the range."""
    with storage.open_to_read(text_range.path, 0, text_range.begin) as file:
        text = io.TextIOWrapper(file, encoding="latin-1")
        while part := text.read(storage.BUFFER_BYTES):
            number += part.count("\n")
    return InputError(f"`{text_range.path}`, line {number}{fault}")


_READERS = {
    "prose": _prose,
    "sentences": _blocks_of_lines,
    "paragraphs": _blocks_of_lines,
    "documents": _lines_alone,
    "jsonl": _jsonl,
    "wikiextractor": _wikiextractor,
}


# Lines


def _bounded_lines(text_range):
    """Yields lines of at most `MAX_DOCUMENT_CHARS`; longer ones are split as paragraphs are."""
    line = ""
    for part in _lines(text_range, MAX_DOCUMENT_CHARS):
        *full, line = split_long_text(line + part)
        yield from full
        if part.endswith("\n"):
            yield line
            line = ""
    if line:
        yield line


def _whole_lines(text_range):
    """Yields the number of each line, from 1, and the line, of at most `MAX_LINE_CHARS`."""
    for number, line in enumerate(_lines(text_range, MAX_LINE_CHARS + 1), start=1):
        if len(line) - line.endswith("\n") > MAX_LINE_CHARS:
            fault = (
                f" must have at most {MAX_LINE_CHARS:,} characters. Received: more. Split its "
                "document into several."
            )
            raise _line_error(text_range, number, fault)
        yield number, line


def _lines(text_range, max_chars=-1):
    return _text_lines(text_range.path, max_chars, text_range.begin, text_range.end)


def _text_lines(path, max_chars=-1, begin=0, end=None):
    """Yields the lines from byte `begin` to before `end`, ending in LF (CRLF and CR are converted).

    A line longer than `max_chars` is yielded in parts of this length; -1 never splits.
    """
    try:
        with storage.open_to_read(path, begin, end) as file:
            text = io.TextIOWrapper(file, encoding="utf-8")
            while line := text.readline(max_chars):
                if "\0" in line:
                    raise _not_utf8(path, begin, end)
                # A byte order mark is at the start, or inside where files were joined.
                yield line.replace("\ufeff", "")
    except UnicodeDecodeError:
        raise _not_utf8(path, begin, end) from None


def _not_utf8(path, begin, end):
    """Returns the error for the first NUL or byte that is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    fault, data, offset = None, b"-", begin
    with storage.open_to_read(path, begin, end) as file:
        while data and not fault:
            data = file.read(storage.BUFFER_BYTES)
            text = decoder.decode(data, final=not data)
            fault = _NOT_UTF8.search(text)
            offset += len(text[: fault.start()].encode()) if fault else len(text.encode())
    if fault is None:
        return InputError(f"`{path}` must not change while it is read.")
    return InputError(
        f"`{path}` must be text in UTF-8. Byte {offset} (0x{ord(fault[0]) & 0xFF:02x}) is not. If "
        "the file is in another encoding, such as CP1252, CP1251 or UTF-16LE, `iconv -f ENCODING "
        f"-t UTF-8 {shlex.quote(str(path))} > new.txt` converts it; otherwise it is binary, "
        "damaged, or mixes encodings.",
        Mistake.NOT_TEXT,
    )
