"""Splits documents into sentences.

A sentence is never empty and contains no line end and no run of white space. There are two
splitters:

- "sentencex": rules and abbreviations of the language (the default);
- "line": every paragraph is one sentence.
"""

import re

import sentencex

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from data_pipeline.text.corpus_formats import split_long_text

#: Languages with rules of their own in sentencex (`src/languages/mod.rs`), then those for which its
#: general rules work. Listed because the library silently treats any unknown code as English.
LANGUAGES = (
    *"am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn".split(),
    *"ml mr my nl or pa pl pt ru sk ta te uk".split(),
    *"af az be bs cs cy et eu fa ga gl he hr hu id is ka ko lt lv mk".split(),
    *"ms ne nn no ro sl sq sr sv sw th tl tr ur uz vi zh".split(),
)

#: sentencex never splits inside quotation marks or brackets, and an unclosed one may extend to the
#: end of the paragraph (139,000 characters in Dickens' "Hard Times"). So a sentence of more
#: characters than this is split inside them too.
MAX_QUOTED_CHARS = 200

#: Characters given to sentencex at once: it takes quadratic time for unclosed quotation marks.
MAX_CHUNK_CHARS = 10_000

_WORD_CHARACTER = re.compile(r"\w")
_BLANKS_FOR_MARKS = str.maketrans(dict.fromkeys('"“”«»„()[]—', " "))
_DASHES = re.compile(r"--+")
# A quotation mark, not an apostrophe: after the end of a sentence, or before a word. The expression
# starts with the character and then looks around it, because that is faster.
_SINGLE_QUOTE = re.compile(r"['’‘](?:(?<=[.!?,]['’])(?!\S)|(?<!\S.)(?<!’))")
_OPENING_MARKS = "\"'“‘«„(["


def split_sentences(document, splitter: str = "sentencex", language: str = "en") -> list[str]:
    """Splits a document into sentences.

    Its paragraphs are split independently. With `sentences_given`, each of them is a sentence,
    whatever the splitter, one of `SPLITTERS`. Only "sentencex" uses `language`, one of `LANGUAGES`.
    Raises InputError if either is unknown.
    """
    check_splitter(splitter, language)
    split = _by_line if document.sentences_given else SPLITTERS[splitter]
    # sentencex panics at a no-break space and the like after an initial ("A\u00a0. B").
    paragraphs = [_collapse(paragraph) for paragraph in document.paragraphs]
    sentences = split(paragraphs, language)
    return [stripped for sentence in sentences if (stripped := sentence.strip())]


def check_splitter(splitter, language):
    """Raises InputError if the name of a splitter or a language is unknown."""
    if splitter not in SPLITTERS:
        raise InputError(f"`splitter={splitter}` is unknown{did_you_mean(splitter, SPLITTERS)}")
    check_language(language)


def check_language(language):
    """Raises InputError if there are no rules for a language."""
    if language not in LANGUAGES:
        raise InputError(f"`language={language}` is unknown{did_you_mean(language, LANGUAGES)}")


def _collapse(text):
    # Faster than splitting and joining: no white space but the blank is printable.
    if text.isprintable() and "  " not in text:
        return text.strip(" ")
    return " ".join(text.split())


def _by_line(paragraphs, language):
    return paragraphs


def _by_sentencex(paragraphs, language):
    for paragraph in paragraphs:
        pending = ""
        for chunk in split_long_text(paragraph, MAX_CHUNK_CHARS):
            if pending and not chunk.startswith(" "):
                pending += " "
            for sentence in _segments(chunk, language):
                if pending and not _continues(pending, sentence):
                    yield pending
                    pending = ""
                pending += sentence
        yield pending


def _continues(pending, sentence):
    """Returns whether a break is wrong: in "asyncio.CancelledError", or before a single mark."""
    if sentence[:1].isalnum():
        return pending[-1] == "."
    return not _WORD_CHARACTER.search(sentence)


def _segments(text, language):
    for sentence in sentencex.segment(language, text):
        if len(sentence) <= MAX_QUOTED_CHARS:
            yield sentence
        else:
            yield from _inside_quotes(sentence, language)


def _inside_quotes(text, language):
    """Yields the sentences of a text as if it had no quotation marks and brackets."""
    start = end = 0
    for sentence in sentencex.segment(language, _without_marks(text)):
        end += len(sentence)
        stop = end
        # White space belongs to the sentence before it, an opening mark to the one after it.
        if end < len(text) and text[end - 1] in _OPENING_MARKS:
            opening = start + len(text[start:end].rstrip(_OPENING_MARKS))
            if opening == 0 or text[opening - 1].isspace():
                stop = opening
        yield text[start:stop]
        start = stop
    yield text[start:]


def _without_marks(text):
    text = _SINGLE_QUOTE.sub(" ", text).translate(_BLANKS_FOR_MARKS)
    return _DASHES.sub(lambda dashes: " " * len(dashes[0]), text)


#: Splitter -> function of (paragraphs, language) that yields sentences.
SPLITTERS = {
    "sentencex": _by_sentencex,
    "line": _by_line,
}
