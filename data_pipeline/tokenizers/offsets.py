"""Character offsets: the part of the raw text, before any clean-up, that each piece comes from.

Answers to questions are copied from the raw text, so the offsets must be exact. They are tracked
in linear time. For SentencePiece, `clean_up_tracked` returns the origin of each character it
writes, SentencePiece does the same for its normalisation, and the pieces are substrings of the
normalised text. WordPiece and byte-level BPE do not reorder text: the pieces, one after the other,
are what remains of the characters. So the length of each piece and the number of characters
(WordPiece) or bytes (BPE) that remain of each character of the raw text are enough.
`serving/graph/aligners.py` does the same in a graph.
"""

import functools
from typing import NamedTuple

import numpy as np

from data_pipeline.tokenizers.byte_bpe import bytes_of
from data_pipeline.tokenizers.cleanup import clean_up_tracked
from data_pipeline.tokenizers.sentencepiece_model import replace_surrogates
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import SPACE
from data_pipeline.tokenizers.wordpiece import CONTINUATION, is_space


class WordPieceAligner:
    """Encodes texts with WordPiece and returns the offsets of the pieces.

    An unknown word is one piece. Deleted characters, such as accents, belong to the piece before
    them, unless white space is in between.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._model = tokenizer.model
        self._unk_id = tokenizer.unk_id
        self._num_written = functools.cache(self._num_remaining)

    def align(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the fields of `AlignedPieces`."""
        ids, sizes = [], []
        for word in self._model.basic.words(text):
            of_word = self._model.encode(word)
            ids += of_word
            sizes += self._sizes(word, of_word)
        written = np.array([self._num_written(character) for character in text], np.int64)
        starts, ends = _sources(
            written, np.array([is_space(character) for character in text], bool)
        )
        lengths = np.array(sizes, np.int64)
        stops = np.cumsum(lengths)
        return np.array(ids, np.int32), starts[stops - lengths], ends[stops - 1]

    def _sizes(self, word, ids):
        if ids == [self._unk_id]:
            return [len(word)]
        pieces = [self._model.vocabulary[id] for id in ids]
        return [len(pieces[0]), *(len(piece) - len(CONTINUATION) for piece in pieces[1:])]

    def _num_remaining(self, character):
        """Counts what remains of a character; the neighbours make no difference to the number."""
        return sum(map(len, self._model.basic.words(character)))


class ByteBPEAligner:
    """Encodes texts with byte-level BPE and returns the offsets of the pieces.

    The space before a word does not belong to its piece. If the bytes of a character are in several
    pieces, all of them come from it. A piece of nothing but the space that `add_prefix_space` adds
    has equal start and end.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._model = tokenizer.model
        self._adds_space = tokenizer.config.add_prefix_space
        self._sizes, self._spaces = piece_bytes(tokenizer)

    def align(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the fields of `AlignedPieces`."""
        ids = np.array(self._model.encode(text), np.int32)
        # A surrogate is replaced by one character, of three bytes.
        read = replace_surrogates(text)
        written = np.array([len(character.encode()) for character in read], np.int64)
        starts, ends = _sources(written, np.zeros(len(read), bool))
        stops = np.cumsum(self._sizes[ids], dtype=np.int64)
        if stops.size and stops[-1] > len(starts):  # a space was added
            starts, ends = np.append(np.int32(0), starts), np.append(np.int32(0), ends)
        begins = stops - self._sizes[ids] + self._spaces[ids]
        return ids, starts[begins], ends[stops - 1]


def piece_bytes(tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """Returns the bytes of each piece of byte-level BPE, and how many are a space before a word.

    Two int64 arrays [V]. The second one is 0 for white space alone.
    """
    contents = [bytes_of(piece) for piece in tokenizer.model.vocabulary]
    spaces = [len(content) > 1 and content[:1] == b" " != content[1:2] for content in contents]
    return np.array(list(map(len, contents)), np.int64), np.array(spaces, np.int64)


def _sources(written, is_space):
    """Returns which characters of the raw text the parts that remain come from.

    Args:
        written: int64 [C]. Number of parts that remain of each character.
        is_space: bool [C]. Characters that the ones before them do not extend over.

    Returns:
        int32 [sum of `written`] each: the character, and the end of it and of the deleted
        characters after it.
    """
    stops = np.flatnonzero((written > 0) | is_space)
    following = np.append(stops, len(written))[1:].astype(np.int32)
    counts = written[stops]
    return np.repeat(stops.astype(np.int32), counts), np.repeat(following, counts)


class AlignedPieces(NamedTuple):
    """The T pieces of a text and the characters they come from.

    The white space before a word does not belong to its first piece. Deleted characters belong to
    the piece before them. If one character becomes several pieces (`½` becomes three), all of them
    come from it. A `▁` without a character in the text has equal `starts` and `ends`.
    """

    ids: np.ndarray  # int32 [T], as from `Tokenizer.encode`
    starts: np.ndarray  # int32 [T], the first character of the raw text that a piece comes from
    ends: np.ndarray  # int32 [T], one more than the last such character

    def covering(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the first and last piece that overlap characters `start` to before `end`."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, end, side="left")) - 1
        return (first, last) if first <= last else None


class TextAligner:
    """Encodes texts as a tokenizer of any kind does, and returns the offsets of the pieces too."""

    def __init__(self, tokenizer: Tokenizer):
        self._aligner = _ALIGNERS[tokenizer.config.kind](tokenizer)

    def align(self, text: str) -> AlignedPieces:
        """Returns the pieces of a text and the characters they come from, in linear time."""
        return AlignedPieces(*self._aligner.align(text))


class SentencePieceAligner:
    """Encodes texts with SentencePiece and returns the offsets of the pieces."""

    def __init__(self, tokenizer: Tokenizer):
        self._config = tokenizer.config
        self._model, self._processor = tokenizer.model, tokenizer.model.processor
        self._byte_ids = {id for id in range(tokenizer.vocab_size) if self._processor.is_byte(id)}
        self._adds_space = self._processor.normalize("x").startswith(SPACE)

    def align(self, text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the fields of `AlignedPieces`."""
        cleaned, cleaned_starts, cleaned_ends = self._clean_up(text)
        normal, origins = self._processor.normalize(cleaned, with_offsets=True)
        # Characters written together have one origin; their source ends at the next origin.
        origins = np.array(origins, np.int64)
        following = np.searchsorted(origins, origins[:-1], side="right")
        read_to = origins[np.minimum(following, len(normal))]
        if self._adds_space and normal:
            read_to[0] = origins[0]
        has_source = read_to > origins[:-1]
        # The additional entry is for characters that come from behind the last one: nothing.
        starts = np.append(cleaned_starts, len(text))[origins[:-1]]
        ends = np.where(has_source, np.append(cleaned_ends, 0)[read_to - 1], starts)
        ids, spans = [], []
        for id, begin, end in self._spans_of_pieces(cleaned):
            is_split = id in self._model.digit_comma
            parts = self._split_digit_comma(id, begin, end) if is_split else [(id, begin, end)]
            for part, part_begin, part_end in parts:
                ids.append(part)
                spans.append(_without_space(normal, part_begin, part_end))
        begins, stops = np.array(spans, np.int64).reshape(-1, 2).T
        piece_starts = np.append(starts, len(text))[begins]
        piece_ends = np.where(stops > begins, np.append(ends, 0)[stops - 1], piece_starts)
        starts, ends = piece_starts.astype(np.int32), piece_ends.astype(np.int32)
        return np.array(ids, np.int32), starts, ends

    def _clean_up(self, text):
        text = replace_surrogates(text)
        if self._config.cleanup == "reference":
            return clean_up_tracked(text, self._config.lower_case, self._config.strip_accents)
        every = np.arange(len(text))
        return text, every, every + 1

    def _spans_of_pieces(self, cleaned):
        """Yields id, begin and end of each piece in SentencePiece's normalised text."""
        begin = 0
        ids, pieces = self._processor.encode(cleaned), self._processor.encode(cleaned, out_type=str)
        for id, piece in zip(ids, pieces, strict=True):
            if id not in self._byte_ids:
                end = begin + len(piece)
                yield id, begin, end
                begin = end
            elif 0x80 <= int(piece[3:5], 16) < 0xC0:  # <0x9F> continues the same character
                yield id, begin - 1, begin
            else:
                yield id, begin, begin + 1
                begin += 1

    def _split_digit_comma(self, id, begin, end):
        """Yields the same for the pieces that replace one that ends in digit and comma."""
        *number, comma = self._model.digit_comma[id]
        pieces = [self._model.vocabulary[part].replace(SPACE, "") for part in number]
        piece = self._model.vocabulary[id]
        begin += len(piece) - len(piece.lstrip(SPACE))
        if sum(map(len, pieces)) != end - 1 - begin:  # an unknown digit: each may be any of them
            yield from ((part, begin, end - 1) for part in number)
        else:
            for part, piece in zip(number, pieces, strict=True):
                yield part, begin, begin + len(piece)
                begin += len(piece)
        yield comma, end - 1, end


_ALIGNERS = {
    "unigram": SentencePieceAligner,
    "wordpiece": WordPieceAligner,
    "bpe": ByteBPEAligner,
}


def _without_space(normal, begin, end):
    """Returns begin and end without the space around a piece, unless it is nothing but space."""
    piece = normal[begin:end]
    stripped = piece.strip(SPACE)
    if not stripped:
        return begin, end
    first = begin + piece.index(stripped)
    return first, first + len(stripped)
