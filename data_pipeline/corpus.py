"""Reads text files of four formats into documents, streaming.

Files come from `text_files.py`; `Document` goes on to `sentences.py`. Nothing is skipped in
silence: what is not of its format is refused with file, place and reason.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from data_pipeline.text_files import find_files, listing, text_lines

#: Longer documents are cut into parts, so that shuffling and hold-out work on books too.
MAX_DOCUMENT_CHARS = 50_000
#: A longer line is no wrapped line: it stands as a paragraph of its own.
MAX_WRAPPED_CHARS = 120

_SENTENCE_END = re.compile(r"[.!?][\"')\]’”]*\s|[。！？][」』”’]*")
# Scripts written without spaces: Han, kana, their punctuation and full-width forms; not Hangul.
_UNSPACED = (
    r"[\u2e80-\u30ff\u31c0-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_UNSPACED_BREAK = re.compile(rf"(?<={_UNSPACED})\n(?={_UNSPACED})")
_DOC_LINE = re.compile(r"<doc\s[^<]*>")
_DOC_TAG = re.compile(r"(<doc\s[^>]*>|</doc>)")
_DOC_TITLE = re.compile(r'\b(?:id|title)="([^"]+)"')
_JSON_WITH_TEXT = re.compile(r'\{.*"text"\s*:\s*"')


@dataclass(frozen=True)
class Document:
    """One text, or one part of a long one.

    Attributes:
        name: str. Where it comes from, relative to the source given: "b/x.txt", "x.jsonl:12",
            "b/x.txt#2" for a part. Two sources may hold the same name; `digest` tells them apart.
        paragraphs: tuple of str. Not empty, white space collapsed.
        sentences_given: bool. Whether each paragraph is one sentence already.
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


def read_corpus(sources, format="auto") -> Iterator[Document]:
    """Yields the documents of a corpus, whatever the order of its sources.

    Memory is bounded by one document part; for "jsonl" and "wikiextractor" also by one line.

    Args:
        sources: list of str or Path. Each a file, a folder (recursive, hidden files left out) or
            a glob pattern ("**" allowed; a folder it matches is read as a folder).
        format: str. "prose": one document per file, blank lines separate paragraphs, wrapped
            lines are joined; "sentences": one sentence per line, a blank line or the end of the
            file ends a document; "jsonl": one object with "text" per line, "id" or "title" name
            it; "wikiextractor": `<doc ...>` to `</doc>`; "auto": by extension and first line.

    Raises:
        InputError: If a source is missing or empty, a file cannot be read as UTF-8 text of its
            format, or the whole corpus holds no text.

    Source:
        "sentences" is the input of google-research/albert, `create_pretraining_data.py`, which
        however lets the last document of a file run on into the next file.
    """
    if format not in (*_READERS, "auto"):
        raise InputError(f"`format={format}` is unknown{did_you_mean(format, [*_READERS, 'auto'])}")
    is_empty = True
    for name, path in find_files(sources):
        chosen = _detect(path) if format == "auto" else format
        keyed = _READERS[chosen](path)
        for (_, label), group in itertools.groupby(keyed, key=lambda pair: pair[0]):
            paragraphs = (paragraph for _, paragraph in group)
            for document in _parts(name + label, paragraphs, chosen == "sentences"):
                is_empty = False
                yield document
    if is_empty:
        raise InputError(f"The corpus is empty: no text in {listing(sources)}.")


def _detect(path):
    if path.suffix.lower() in (".jsonl", ".json", ".ndjson"):
        return "jsonl"
    lines = (line.lstrip() for line in text_lines(path, MAX_DOCUMENT_CHARS))
    first = next(filter(None, lines), "")
    if first.startswith("<doc "):
        return "wikiextractor"
    return "jsonl" if _JSON_WITH_TEXT.match(first) else "prose"


def _prose(path):
    """Joins wrapped lines to paragraphs; a block is flushed early when it grows too long."""
    block, size = [], 0
    for line in _bounded_lines(path):
        text = line.strip()
        if text and len(text) <= MAX_WRAPPED_CHARS:
            block.append(text)
            size += len(text) + 1
            if size > MAX_DOCUMENT_CHARS:
                *whole, rest = cut_text(_join(block))
                block, size = [rest], len(rest)
                yield from (((0, ""), paragraph) for paragraph in whole)
        else:
            if block:
                yield (0, ""), _join(block)
            if text:
                yield (0, ""), text
            block, size = [], 0
    if block:
        yield (0, ""), _join(block)


def _join(lines):
    return _UNSPACED_BREAK.sub("", "\n".join(lines)).replace("\n", " ")


def _bounded_lines(path):
    """Yields lines of at most `MAX_DOCUMENT_CHARS`; longer ones are cut as paragraphs are."""
    held = ""
    for piece in text_lines(path, MAX_DOCUMENT_CHARS):
        held += piece
        if held.endswith("\n"):
            yield from cut_text(held)
            held = ""
        else:
            *whole, held = cut_text(held)
            yield from whole
    yield from filter(None, [held])


def _sentences(path):
    number, is_open = 0, False
    for line in _bounded_lines(path):
        if not line.strip():
            is_open = False
            continue
        if not is_open:
            number, is_open = number + 1, True
        yield (number, f":{number}"), line


def _jsonl(path):
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        place = f"`{path}`, line {number}"
        try:
            record = json.loads(line)
        except RecursionError:
            raise InputError(f"{place} should be one JSON object. It nests too deep.") from None
        except ValueError as error:
            raise InputError(f"{place} should be one JSON object. It is broken: {error}.") from None
        text = record.get("text") if isinstance(record, dict) else None
        if not isinstance(text, str):
            raise InputError(f'{place} should be a JSON object with a string "text". It has none.')
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f'{place} has half a surrogate pair in its "text".') from None
        if "\0" in text:
            raise InputError(f'{place} has a NUL character in its "text".')
        label = record.get("id") or record.get("title")
        key = (number, f":{label if isinstance(label, (str, int)) else number}")
        yield from ((key, paragraph) for paragraph in re.split(r"\r\n?|\n", text))


def _wikiextractor(path):
    key = None
    for number, line in enumerate(text_lines(path), start=1):
        line = line.strip()
        # A title may hold ">", so a tag alone on its line is taken whole.
        for part in [line] if _DOC_LINE.fullmatch(line) else _DOC_TAG.split(line):
            if _DOC_LINE.fullmatch(part):
                if key:
                    raise InputError(f"`{path}`, line {key[0]}: `<doc>` is not closed.")
                title = _DOC_TITLE.search(part)
                key = (number, f":{title[1] if title else number}")
            elif part == "</doc>":
                if not key:
                    raise InputError(f"`{path}`, line {number}: `</doc>` closes nothing.")
                key = None
            elif part.strip():
                if not key:
                    raise InputError(f"`{path}`, line {number}: text outside of `<doc>`.")
                yield key, part
    if key:
        raise InputError(f"`{path}`, line {key[0]}: `<doc>` is not closed.")


_READERS = {
    "prose": _prose,
    "sentences": _sentences,
    "jsonl": _jsonl,
    "wikiextractor": _wikiextractor,
}


def _parts(name, paragraphs, sentences_given):
    """Yields a document, or numbered parts of it cut at the edges of paragraphs."""
    held, size, number = [], 0, 1
    cleaned = (" ".join(paragraph.split()) for paragraph in paragraphs)
    for paragraph in itertools.chain.from_iterable(cut_text(text) for text in cleaned if text):
        if held and size + len(paragraph) > MAX_DOCUMENT_CHARS:
            yield Document(f"{name}#{number}", tuple(held), sentences_given)
            held, size, number = [], 0, number + 1
        held.append(paragraph)
        size += len(paragraph) + 1
    if held:
        yield Document(name if number == 1 else f"{name}#{number}", tuple(held), sentences_given)


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
