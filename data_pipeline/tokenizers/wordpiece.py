"""Text and ids of a WordPiece vocabulary, as in BERT and the Chinese ALBERT models.

Text is split into words at white space, punctuation and ideographs, and words into pieces.

`graph_tokenization` does the same inside a TensorFlow graph.
"""

import collections
import functools
import hashlib
import logging
import re
import unicodedata
from typing import Literal

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings
from data_pipeline.tokenizers.cleanup import character_ranges, characters_of, run_of

logger = logging.getLogger(__name__)

UNKNOWN = "[UNK]"
#: The mark of a piece that continues a word.
CONTINUATION = "##"
#: Longer words are unknown, unless the vocabulary comes from a program with another limit.
MAX_WORD_CHARACTERS = 200

#: In the order of `special_ids`.
SPECIAL_PIECES = ("[PAD]", UNKNOWN, "[CLS]", "[SEP]", "[MASK]")
#: Pieces that no text produces, as brackets become words: those above, `[unused1]`, `<S>`.
_SYMBOL = re.compile(r"\[.+\]|<.+>")
#: Words whose ids are cached; rare words beyond that would take much memory.
_MAX_CACHED_CHUNKS = 1 << 18

#: Blocks of ideographs; each ideograph is a word. Kana and Hangul are not among them.
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

#: What becomes another letter at the end of a word, and what it becomes elsewhere.
FINAL_SIGMA = ("Σ", "σ")
_BREAKS = "\t\n\r"  # white space, though their category is Cc
_REPLACEMENT = "\ufffd"


class WordPieceConfig(Settings):
    """The content of `tokenizer_config.json`, which describes the `vocab.txt` beside it.

    `lower_case`, `strip_accents` and `program` are the settings of `BasicTokenizer`.
    """

    kind: Literal["wordpiece"] = "wordpiece"
    lower_case: bool
    strip_accents: bool
    #: What text is split like: google-research/albert, or the library tokenizers.
    program: Literal["google", "tokenizers"] = "google"
    max_word_characters: int = MAX_WORD_CHARACTERS
    vocab_size: int
    sha256: str  # of the file, in hexadecimal
    version: Literal[1] = 1  # of this format


def has_capitals(words, path):
    """Returns whether pieces of a vocabulary have capital letters, with a warning if they do."""
    if is_cased := any(re.search("[A-ZÀ-ÖØ-ÞΑ-ΩА-Я]", word) for word in words):
        logger.warning(
            "`%s` has pieces with capital letters, so the case of text is preserved. Use "
            "`lower_case=True` if the vocabulary is for lower-cased text.",
            path,
        )
    return is_cased


class WordPieceModel:
    """A WordPiece vocabulary: words are split greedily, and `##` marks a continued word.

    It has the attributes and methods of `SentencePieceModel`.

    Source: `FullTokenizer` in google-research/albert, `tokenization.py`.
    """

    config_class = WordPieceConfig

    def __init__(self, model_bytes: bytes, config: WordPieceConfig):
        self.vocabulary = read_pieces(model_bytes)
        self._ids = {piece: id for id, piece in enumerate(self.vocabulary)}
        if missing := [piece for piece in SPECIAL_PIECES if piece not in self._ids]:
            raise InputError(
                "A WordPiece vocabulary must contain the pieces "
                f"{', '.join(SPECIAL_PIECES)}, one per line. Missing: {', '.join(missing)}."
            )
        self.special_ids = [self._ids[piece] for piece in SPECIAL_PIECES]
        self._unk_id = self._ids[UNKNOWN]
        is_ordinary = [
            not piece.isspace() and not _SYMBOL.fullmatch(piece) for piece in self.vocabulary
        ]
        self.ordinary_ids = np.flatnonzero(is_ordinary).astype(np.int32)
        settings = config.model_dump_json(exclude={"vocab_size", "sha256", "version"})
        # The hash of the pieces, not of the file, so that line ends do not matter.
        content = "\n".join([*self.vocabulary, settings])
        self.digest = hashlib.sha256(content.encode()).hexdigest()
        self.basic = BasicTokenizer(config.lower_case, config.strip_accents, config.program)
        self._ids_of_chunk = _IdsOfChunk(
            self.basic, self._ids, self._unk_id, config.max_word_characters
        )

    @classmethod
    def config_of_file(cls, model_bytes, path, settings) -> WordPieceConfig:
        """Returns the configuration of a bare list of pieces, with the given settings (dict)."""
        pieces = read_pieces(model_bytes)
        lower_case = settings.get("lower_case")
        if lower_case is None:
            words = (piece for piece in pieces if not _SYMBOL.fullmatch(piece))
            lower_case = not has_capitals(words, path)
        return WordPieceConfig(
            lower_case=lower_case,
            strip_accents=settings.get("strip_accents", lower_case),
            vocab_size=len(pieces),
            sha256=hashlib.sha256(model_bytes).hexdigest(),
        )

    @classmethod
    def with_settings(cls, config, settings) -> WordPieceConfig:
        """Returns a configuration with other settings (dict)."""
        return config.replace(**settings)

    def encode(self, text):
        return self.encode_batch([text])[0].tolist()

    def encode_batch(self, texts):
        ids_of_chunk = self._ids_of_chunk.__getitem__
        # Bytes are faster to join than numbers.
        encoded = (b"".join(map(ids_of_chunk, self.basic.chunks(text))) for text in texts)
        return [np.frombuffer(ids, np.int32).copy() for ids in encoded]

    def continuation_ids(self, text):
        """Returns the ids of any text: as in the original, a word starts after a symbol."""
        return self.encode(text)

    def decode(self, ids):
        """Returns the text of ids: words with spaces between them, but none at ideographs."""
        pad_id, _, *control_ids = self.special_ids
        parts = []
        joins_next = True
        for id in ids:
            if id != pad_id and id not in control_ids:
                piece = self.vocabulary[id]
                text = piece.removeprefix(CONTINUATION) if _continues_word(piece) else piece
                if not (joins_next or _continues_word(piece) or _needs_no_space(piece)):
                    parts.append(" ")
                parts.append(text)
                joins_next = _needs_no_space(text)
        return "".join(parts)

    def id_of(self, piece):
        return self._ids.get(piece, self._unk_id)

    def word_starts(self, rule):
        return np.array([not _continues_word(piece) for piece in self.vocabulary])


class _IdsOfChunk(dict):
    """Cache: chunk of `BasicTokenizer` -> ids of its pieces, int32, as bytes."""

    def __init__(self, basic, ids, unk_id, max_word_characters):
        self._basic, self._ids, self._unk_id = basic, ids, unk_id
        self._max_word_characters = max_word_characters
        self._longest = max(len(piece.removeprefix(CONTINUATION)) for piece in ids)

    def __missing__(self, chunk):
        ids = []
        for word in self._basic.words_of_chunk(chunk):
            ids += self._split(word) or [self._unk_id]
        encoded = np.array(ids, np.int32).tobytes()
        if len(chunk) <= self._max_word_characters and len(self) < _MAX_CACHED_CHUNKS:
            self[chunk] = encoded
        return encoded

    def _split(self, word):
        """Returns the ids of the longest first piece, of the longest next one, ...; or None."""
        if len(word) > self._max_word_characters:
            return None
        ids, start = [], 0
        while start < len(word):
            mark = CONTINUATION if start else ""
            for end in range(min(len(word), start + self._longest), start, -1):
                id = self._ids.get(mark + word[start:end])
                if id is not None:
                    break
            else:
                return None
            ids.append(id)
            start = end
        return ids


class BasicTokenizer:
    """Cleans up text and splits it into words.

    With `strip_accents`, it decomposes text (NFD) and deletes characters of category Mn. The
    original does so if it lower-cases letters. For the `program` "tokenizers", private characters
    are deleted, too, and `Σ` becomes `σ` at the end of a word as well, as in transformers.

    Source: `BasicTokenizer` in google-research/albert, `tokenization.py`; `BertNormalizer` in
    huggingface/tokenizers, `bert.rs`.
    """

    def __init__(self, lower_case: bool, strip_accents: bool, program: str = "google"):
        self._lower_case = lower_case
        self._strip_accents = strip_accents
        self._by_character = program == "tokenizers"
        self._dropped = run_of(is_dropped_or_private if self._by_character else is_dropped)

    def words(self, text: str) -> list[str]:
        """Returns the words of a text; an ideograph or punctuation mark is a word of its own."""
        return [word for chunk in self.chunks(text) for word in self.words_of_chunk(chunk)]

    def chunks(self, text: str) -> list[str]:
        """Does the steps that need the whole text; returns words that may still have accents.

        The remaining step, `words_of_chunk`, needs one chunk only, so its results can be cached.
        """
        if not text.isprintable() or _REPLACEMENT in text:  # rare, and quickly decided
            text = self._dropped.sub("", text)
        if self._lower_case:  # a sigma changes at the end of a word
            text = text.replace(*FINAL_SIGMA).lower() if self._by_character else text.lower()
        if text.isascii():
            return _chunks_up_to(0x7F).findall(text)
        is_beyond = _BEYOND_16_BITS.search(text) is not None
        return _chunks_up_to(0x10FFFF if is_beyond else 0xFFFF).findall(text)

    def words_of_chunk(self, chunk: str) -> list[str]:
        """Returns the words of a chunk: usually one, but none for accents, three for `a≠b`."""
        if not self._strip_accents or chunk.isascii():
            return [chunk]
        chunk = run_of(is_mark).sub("", unicodedata.normalize("NFD", chunk))
        return _chunks_up_to(0x10FFFF).findall(chunk)


def is_dropped(character: str) -> bool:
    """Returns whether a character is deleted: U+FFFD, controls, formats and surrogates."""
    is_control = unicodedata.category(character) in ("Cc", "Cf", "Cs")
    return character == _REPLACEMENT or (is_control and character not in _BREAKS)


def is_dropped_or_private(character: str) -> bool:
    return is_dropped(character) or unicodedata.category(character) == "Co"


def is_space(character: str) -> bool:
    return character in _BREAKS or unicodedata.category(character) in ("Zs", "Zl", "Zp")


def is_punctuation(character: str) -> bool:
    """In ASCII, that is all but letters, digits, space and controls, such as `$` and `^`."""
    is_ascii_sign = "!" <= character <= "~" and not character.isalnum()
    return is_ascii_sign or unicodedata.category(character).startswith("P")


def is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in IDEOGRAPHS)


def is_mark(character: str) -> bool:
    return unicodedata.category(character) == "Mn"


@functools.cache
def _chunks_up_to(last):
    """Returns the expression for texts without characters beyond the last one.

    Python's `re` looks up a character in a table, except for ranges beyond 16 bits, with which it
    compares every character that is not in the table.
    """
    single = [*character_ranges(is_punctuation), *IDEOGRAPHS]
    single = [pair for pair in single if pair[0] <= last]
    spaces = [pair for pair in character_ranges(is_space) if pair[0] <= last]
    return re.compile(f"[^{characters_of([*single, *spaces])}]+|[{characters_of(single)}]")


_BEYOND_16_BITS = re.compile("[\U00010000-\U0010ffff]")


def read_pieces(content: bytes) -> list[str]:
    """Reads a vocabulary file: UTF-8, one piece per line; anything after a blank is ignored.

    Only blanks of ASCII count: white space such as U+3000 is a piece of some vocabularies. A blank
    line is the piece " ". Raises InputError if it is not UTF-8, or a piece occurs twice:
    then google-research/albert and google-research/bert give the pieces after it different ids.

    Source: `load_vocab` in google-research/albert, `tokenization.py`.
    """
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InputError(f"A WordPiece vocabulary must be UTF-8 text. {error}.") from error
    if not lines[-1]:
        lines.pop()
    pieces = [(re.search(r"[^ \t\r\f\v]+", line) or [" "])[0] for line in lines]
    piece, count = next(iter(collections.Counter(pieces).most_common(1)), ("", 0))
    if count > 1:
        numbers = [str(number) for number, other in enumerate(pieces, 1) if other == piece]
        raise InputError(
            "A WordPiece vocabulary must contain each piece once. "
            f"Received: {piece!r} in lines {', '.join(numbers[:3])}."
        )
    return pieces


def _continues_word(piece):
    return piece.startswith(CONTINUATION) and piece != CONTINUATION


def _needs_no_space(text):
    """Returns whether a piece is an ideograph or a mark as wide as one, such as `。`."""
    if len(text) != 1:
        return False
    is_wide = unicodedata.east_asian_width(text) in ("W", "F")
    return is_ideograph(text) or is_wide and unicodedata.category(text).startswith("P")
