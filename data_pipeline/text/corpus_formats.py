"""Reads the four formats of text: a range of a file -> paragraphs, each with its document.

Nothing is skipped in silence: what is not of its format is refused with file, line and reason.
"""

import json
import re
from pathlib import PurePath

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from data_pipeline.text.text_lines import lines_before, text_lines

#: Longer documents are cut into parts, so that shuffling and hold-out work on books too.
MAX_DOCUMENT_CHARS = 50_000
#: A longer line is no wrapped line: it stands as a paragraph of its own.
MAX_WRAPPED_CHARS = 120

_SENTENCE_END = re.compile(r"[.!?][\"')\]’”]*\s|[。！？][」』”’]*")
# Scripts written without spaces: Han, kana, their punctuation and full-width forms; not Hangul.
UNSPACED = (
    r"[\u2e80-\u30ff\u31c0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_UNSPACED_BREAK = re.compile(rf"(?<={UNSPACED})\n(?={UNSPACED})")
_DOC_LINE = re.compile(r"<doc\s[^<]*>")
_DOC_TAG = re.compile(r"(<doc\s[^>]*>|</doc>)")
_DOC_TITLE = re.compile(r'\b(?:id|title)="([^"]+)"')
_JSON_WITH_TEXT = re.compile(r'\{.*"text"\s*:\s*"')


def check_format(format):
    """Refuses the name of an unknown format with an InputError."""
    names = [*_READERS, "auto"]
    if format not in names:
        raise InputError(f"`format={format}` is unknown{did_you_mean(format, names)}")


def detect_format(path) -> str:
    """Tells the format of a file by its extension, else by its first line with text."""
    if PurePath(path).suffix.lower() in (".jsonl", ".json", ".ndjson"):
        return "jsonl"
    lines = (line.lstrip() for line in text_lines(path, MAX_DOCUMENT_CHARS))
    first = next(filter(None, lines), "")
    if first.startswith("<doc "):
        return "wikiextractor"
    return "jsonl" if _JSON_WITH_TEXT.match(first) else "prose"


def paragraphs_of(text_range):
    """Yields the paragraphs of a range, with what tells their documents apart.

    Args:
        text_range: TextRange.

    Yields:
        tuple ((int, str), str). Number and name of the document, which neighbours share, and a
        paragraph, with white space as it stands; it may be blank.

    Raises:
        InputError: If the range cannot be read as UTF-8 text of its format.
    """
    return _READERS[text_range.format](text_range)


def _prose(text_range):
    """Joins wrapped lines to paragraphs; a block is flushed early when it grows too long."""
    document = (0, text_range.place)
    block, size = [], 0
    for line in _bounded_lines(text_range):
        text = line.strip()
        if text and len(text) <= MAX_WRAPPED_CHARS:
            block.append(text)
            size += len(text) + 1
            if size > MAX_DOCUMENT_CHARS:
                *whole, rest = cut_text(_join(block))
                block, size = [rest], len(rest)
                yield from ((document, paragraph) for paragraph in whole)
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


def _bounded_lines(text_range):
    """Yields lines of at most `MAX_DOCUMENT_CHARS`; longer ones are cut as paragraphs are."""
    held = ""
    for piece in _lines(text_range, MAX_DOCUMENT_CHARS):
        held += piece
        if held.endswith("\n"):
            yield from cut_text(held)
            held = ""
        else:
            *whole, held = cut_text(held)
            yield from whole
    yield from filter(None, [held])


def _lines(text_range, max_chars=-1):
    return text_lines(text_range.path, max_chars, text_range.begin, text_range.end)


def _sentences(text_range):
    number, is_open = 0, False
    for line in _bounded_lines(text_range):
        if not line.strip():
            is_open = False
            continue
        if not is_open:
            number, is_open = number + 1, True
        yield (number, f"{text_range.place}:{number}"), line


def _jsonl(text_range):
    for number, line in enumerate(_lines(text_range), start=1):
        if not line.strip():
            continue
        record, fault = _parse(line)
        if fault:
            raise InputError(f"{_place(text_range, number)} {fault}")
        label = record.get("id") or record.get("title")
        document = (number, _name(text_range, label, number))
        yield from ((document, part) for part in re.split(r"\r\n?|\n", record["text"]))


def _parse(line):
    """Returns the JSON object of a line, and what is wrong with it or None."""
    try:
        record = json.loads(line)
    except RecursionError:
        return None, "should be one JSON object. It nests too deep."
    except ValueError as error:
        return None, f"should be one JSON object. It is broken: {error}."
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        return None, 'should be a JSON object with a string "text". It has none.'
    try:
        text.encode()
    except UnicodeEncodeError:
        return None, 'has half a surrogate pair in its "text".'
    return record, 'has a NUL character in its "text".' if "\0" in text else None


def _wikiextractor(text_range):
    document = None
    for number, line in enumerate(_lines(text_range), start=1):
        line = line.strip()
        # A title may hold ">", so a tag alone on its line is taken whole.
        for part in [line] if _DOC_LINE.fullmatch(line) else _DOC_TAG.split(line):
            if _DOC_LINE.fullmatch(part):
                if document:
                    raise _not_closed(text_range, document)
                title = _DOC_TITLE.search(part)
                document = (number, _name(text_range, title and title[1], number))
            elif part == "</doc>":
                if not document:
                    place = _place(text_range, number)
                    raise InputError(f"{place}: `</doc>` closes nothing.")
                document = None
            elif part.strip():
                if not document:
                    raise InputError(f"{_place(text_range, number)}: text outside of `<doc>`.")
                yield document, part
    if document:
        raise _not_closed(text_range, document)


def _not_closed(text_range, document):
    return InputError(f"{_place(text_range, document[0])}: `<doc>` is not closed.")


def _name(text_range, label, number):
    """Names a document by its own label, else by the line it starts at, counted in the range."""
    if isinstance(label, str | int):
        return f"{text_range.name}:{label}"
    return f"{text_range.place}:{number}"


def _place(text_range, number):
    """Words where an error is. Lines before the range are counted only now."""
    number += lines_before(text_range.path, text_range.begin)
    return f"`{text_range.path}`, line {number}"


_READERS = {
    "prose": _prose,
    "sentences": _sentences,
    "jsonl": _jsonl,
    "wikiextractor": _wikiextractor,
}


def cut_text(text, max_chars=MAX_DOCUMENT_CHARS) -> list[str]:
    """Cuts an over-long text after a sentence, else at white space, else anywhere.

    Args:
        text: str. Any.
        max_chars: int. Characters a piece may have.

    Returns:
        list of str. The text itself if it is short enough; the last piece may be empty.
    """
    start, pieces = 0, []
    while len(text) - start > max_chars:
        middle, limit = start + max_chars // 2, start + max_chars
        ends = [match.end() for match in _SENTENCE_END.finditer(text, middle, limit)]
        space = text.rfind(" ", middle, limit) + 1
        end = ends[-1] if ends else space or limit
        pieces.append(text[start:end].strip())
        start = end
    return [*filter(None, pieces), text[start:]]
