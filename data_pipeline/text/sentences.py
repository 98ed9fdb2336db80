"""Splits documents into sentences; stands between `corpus.py` and the segments.

A sentence is never empty, holds no line end and no run of white space. There are four splitters:

- "sentencex": rules and abbreviations of the language, quick (the default);
- "tensorflow-text": tensorflow-text's `StateBasedSentenceBreaker`, the same rules for any language,
  no abbreviations, slow;
- "line": every paragraph is one sentence;
- "none": stretches of at most 100 characters that begin at any word, without regard to sentences.
"""

import functools
import re

import sentencex

from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean
from data_pipeline.text.corpus_formats import UNSPACED, cut_text

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

#: What "none" puts into one stretch.
MAX_STRETCH_CHARS = 100

_WORD_CHARACTER = re.compile(r"\w")
_PAIRED_MARKS = '"“”«»„()[]—'
_DASHES = re.compile(r"--+")
# A quotation mark, not an apostrophe: after the end of a sentence, or before a word. The character
# stands first and what is around it after, because that is quicker.
_SINGLE_QUOTE = re.compile(r"['’‘](?:(?<=[.!?,]['’])(?!\S)|(?<!\S.)(?<!’))")
_OPENING_MARKS = "\"'“‘«„(["
_STRETCH = re.compile(
    rf"\S(?:.{{0,{MAX_STRETCH_CHARS - 1}}}(?:(?!\S)|(?<={UNSPACED})|(?={UNSPACED}))"
    rf"|.{{0,{MAX_STRETCH_CHARS - 1}}})",
    re.DOTALL,
)


def split_sentences(document, splitter="sentencex", language="en") -> list[str]:
    """Splits a document into sentences.

    Args:
        document: Document. Its paragraphs are split each for itself; one with `sentences_given`
            stays as it is, whatever the splitter.
        splitter: str. One of `SPLITTERS`.
        language: str. Code such as "en", "de", "zh"; see `LANGUAGES`. Only "sentencex" heeds it.

    Returns:
        list of str. Without empty ones, white space collapsed.

    Raises:
        InputError: If `splitter` or `language` is unknown.
    """
    check_splitter(splitter, language)
    split = _by_line if document.sentences_given else SPLITTERS[splitter]
    # sentencex panics at a no-break space and the like after an initial ("A\u00a0. B").
    paragraphs = [_collapse(paragraph) for paragraph in document.paragraphs]
    sentences = split(paragraphs, language)
    return [stripped for sentence in sentences if (stripped := sentence.strip())]


@functools.cache
def check_splitter(splitter, language):
    """Refuses what `split_sentences` cannot use.

    Args:
        splitter: str.
        language: str.

    Raises:
        InputError: If `splitter` or `language` is unknown.
    """
    if splitter not in SPLITTERS:
        raise InputError(f"`splitter={splitter}` is unknown{did_you_mean(splitter, SPLITTERS)}")
    if language not in LANGUAGES:
        raise InputError(f"`language={language}` is unknown{did_you_mean(language, LANGUAGES)}")


def _collapse(text):
    # Quicker than to split and join: no white space but the blank is printable.
    if text.isprintable() and "  " not in text:
        return text.strip(" ")
    return " ".join(text.split())


def _by_line(paragraphs, language):
    return paragraphs


def _by_tensorflow_text(paragraphs, language):
    from data_pipeline.text.tf_text_sentences import break_sentences  # loads TensorFlow

    return break_sentences(paragraphs)


def _by_length(paragraphs, language):
    for paragraph in paragraphs:
        yield from _STRETCH.findall(paragraph)


def _by_sentencex(paragraphs, language):
    for paragraph in paragraphs:
        held = ""
        for chunk in cut_text(paragraph, MAX_CHUNK_CHARS):
            if held and not chunk.startswith(" "):
                held += " "
            for sentence in _segments(chunk, language):
                if not held:
                    held = sentence
                elif _goes_on(held, sentence):
                    held += sentence
                else:
                    yield held
                    held = sentence
        yield held


def _goes_on(held, sentence):
    """Tells whether the break was none: inside "asyncio.CancelledError", or before a lone mark."""
    if sentence[:1].isalnum():
        return held[-1] == "."
    return not _WORD_CHARACTER.search(sentence)


def _segments(text, language):
    for sentence in sentencex.segment(language, text):
        if len(sentence) <= MAX_QUOTED_CHARS:
            yield sentence
        else:
            yield from _inside_quotes(sentence, language)


def _inside_quotes(text, language):
    """Yields sentences of a text as if its quotation marks and brackets were not there."""
    start = end = 0
    for sentence in sentencex.segment(language, _without_marks(text)):
        end += len(sentence)
        stop = end
        # White space belongs to the sentence before it, but an opening mark to the one after.
        if end < len(text) and text[end - 1] in _OPENING_MARKS:
            opening = start + len(text[start:end].rstrip(_OPENING_MARKS))
            if opening == 0 or text[opening - 1].isspace():
                stop = opening
        yield text[start:stop]
        start = stop
    yield text[start:]


def _without_marks(text):
    """Puts blanks in place of quotation marks, brackets and dashes."""
    text = _SINGLE_QUOTE.sub(" ", text)
    for mark in _PAIRED_MARKS:
        text = text.replace(mark, " ")
    return _DASHES.sub(lambda dashes: " " * len(dashes[0]), text)


#: Splitter -> function of (paragraphs, language) that yields sentences.
SPLITTERS = {
    "sentencex": _by_sentencex,
    "tensorflow-text": _by_tensorflow_text,
    "line": _by_line,
    "none": _by_length,
}
