"""Splits documents into sentences; stands between `corpus.py` and the segments.

A sentence is never empty, holds no line end and no run of white space.
"""

import re

import sentencex

from data_pipeline.corpus import cut_text
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: Languages with rules of their own in sentencex (`src/languages/mod.rs`), then those its general
#: rules serve. Listed because the library takes any unknown code for English, in silence.
LANGUAGES = (
    *"am ar bg bn ca da de el en es fi fr gu hi hy it ja kk kn".split(),
    *"ml mr my nl or pa pl pt ru sk ta te uk".split(),
    *"af az be bs cs cy et eu fa ga gl he hr hu id is ka ko lt lv mk".split(),
    *"ms ne nn no ro sl sq sr sv sw th tl tr ur uz vi zh".split(),
)

#: sentencex keeps a quotation or a bracket whole, and an unclosed one may run on to the end of the
#: paragraph (139,000 characters in Dickens' "Hard Times"). A longer sentence is split inside too.
MAX_QUOTED_CHARS = 200

#: sentencex takes quadratic time over unclosed quotation marks, so it is given no more at once.
MAX_CHUNK_CHARS = 10_000

_MARK = re.compile(r"[\"“”«»„()\[\]]|(?<=[.!?,])['’](?=\s|$)|(?:(?<=\s)|^)['‘]|--+|—")
_OPENING_MARKS = re.compile(r"(?:(?<=\s)|^)[\"'“‘«„(\[]+$")


def split_sentences(document, splitter="sentencex", language="en") -> list[str]:
    """Splits a document into sentences.

    Args:
        document: Document. Its paragraphs are split each for itself; one with `sentences_given`
            stays as it is.
        splitter: str. "sentencex" (rules and abbreviations of the language) or "line" (every
            paragraph is one sentence).
        language: str. Code such as "en", "de", "zh"; see `LANGUAGES`.

    Returns:
        list of str. Without empty ones, white space collapsed.

    Raises:
        InputError: If `splitter` or `language` is unknown.
    """
    if splitter not in SPLITTERS:
        raise InputError(f"`splitter={splitter}` is unknown{did_you_mean(splitter, SPLITTERS)}")
    if language not in LANGUAGES:
        raise InputError(f"`language={language}` is unknown{did_you_mean(language, LANGUAGES)}")
    split = _whole if document.sentences_given else SPLITTERS[splitter]
    sentences = (
        " ".join(sentence.split())
        for paragraph in document.paragraphs
        for sentence in split(paragraph, language)
    )
    return [sentence for sentence in sentences if sentence]


def _whole(paragraph, language):
    return [paragraph]


def _by_sentencex(paragraph, language):
    held = ""
    for chunk in cut_text(paragraph, MAX_CHUNK_CHARS):
        for sentence in _segments(chunk, language):
            if held and re.search(r"\w", sentence) and not _is_dotted(held, sentence):
                yield held
                held = ""
            held += sentence  # a lone dash or closing mark stays with the sentence before it
        held += " "
    yield held


def _is_dotted(held, sentence):
    """Tells whether the break falls inside a name such as "asyncio.CancelledError"."""
    return held[-1] == "." and sentence[0].isalnum()


def _segments(text, language):
    for sentence in sentencex.segment(language, text):
        if len(sentence) <= MAX_QUOTED_CHARS:
            yield sentence
        else:
            yield from _inside_quotes(sentence, language)


def _inside_quotes(text, language):
    """Yields sentences of a text as if its quotation marks and brackets were not there."""
    masked = _MARK.sub(lambda match: " " * len(match[0]), text)
    start = end = 0
    for sentence in sentencex.segment(language, masked):
        end += len(sentence)
        # White space belongs to the sentence before it, but an opening mark to the one after.
        opening = _OPENING_MARKS.search(text, start, end)
        stop = opening.start() if opening and end < len(text) else end
        yield text[start:stop]
        start = stop
    yield text[start:]


#: Splitter -> function of (paragraph, language) that yields sentences.
SPLITTERS = {"sentencex": _by_sentencex, "line": _whole}
