"""Where each piece of a text comes from: characters of the raw text, before any clean-up.

Answers are read out of the text as its author wrote it, so the way back has to be exact. It is
kept track of on the way there, in linear time: clean-up tells of each character it writes which
ones it read (see `tracked_cleanup`), SentencePiece does the same for its normalisation, and the
pieces are stretches of what it has normalised.
"""

import re
from typing import NamedTuple

import numpy as np
import sentencepiece

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.tracked_cleanup import clean_up_tracked
from data_pipeline.tokenizers.word_starts import SPACE

_SURROGATES = re.compile("[\ud800-\udfff]")


class AlignedPieces(NamedTuple):
    """The pieces of a text and where they come from; T pieces.

    Attributes:
        ids: int32 [T]. Those of `Tokenizer.encode`.
        starts: int32 [T]. The first character of the raw text that a piece comes from. The white
            space before a word is no part of its first piece.
        ends: int32 [T]. One more than the last such character. Characters that were deleted
            belong to the piece before them. Pieces of one character (`½` gives three) all come
            from it. A `▁` that stands for nothing in the text has `starts` equal to `ends`.
    """

    ids: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def covering(self, start: int, end: int) -> tuple[int, int] | None:
        """Returns the pieces that a stretch of the raw text touches.

        Args:
            start: int. The first character.
            end: int. One more than the last character.

        Returns:
            (int, int), the first and the last piece; None if it touches none.
        """
        first = int(np.searchsorted(self.ends, start, side="right"))
        last = int(np.searchsorted(self.starts, end, side="left")) - 1
        return (first, last) if first <= last else None


class TextAligner:
    """Encodes texts as a tokenizer does, and tells where the pieces come from."""

    def __init__(self, tokenizer: Tokenizer):
        """Loads the tokenizer's model once more, to be asked for more than ids.

        Args:
            tokenizer: Tokenizer. Of a SentencePiece vocabulary.

        Raises:
            InputError: If it is of another kind.
        """
        check_tracks_places(tokenizer)
        self._config = tokenizer.config
        self._digit_comma = tokenizer.model.digit_comma
        self._piece_of = tokenizer.piece_of
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
        self._byte_ids = {id for id in range(tokenizer.vocab_size) if self._processor.is_byte(id)}
        self._puts_space_first = self._processor.normalize("x").startswith(SPACE)

    def align(self, text: str) -> AlignedPieces:
        """Returns the pieces of a text and where they come from, in linear time.

        Args:
            text: str. Any text.

        Returns:
            AlignedPieces.
        """
        cleaned, cleaned_starts, cleaned_ends = self._clean_up(text)
        normal, origins = self._processor.normalize(cleaned, with_offsets=True)
        # Characters written together have one origin; what they were read from ends at the next.
        origins = np.array(origins, np.int64)
        following = np.searchsorted(origins, origins[:-1], side="right")
        read_to = origins[np.minimum(following, len(normal))]
        if self._puts_space_first and normal:
            read_to[0] = origins[0]
        is_read = read_to > origins[:-1]
        # One more entry, for what comes from behind the last character: nothing.
        starts = np.append(cleaned_starts, len(text))[origins[:-1]]
        ends = np.where(is_read, np.append(cleaned_ends, 0)[read_to - 1], starts)
        ids, places = [], []
        for id, begin, end in self._cut(cleaned):
            if id in self._digit_comma:
                for part, part_begin, part_end in self._split(id, begin, end):
                    ids.append(part)
                    places.append(_without_space(normal, part_begin, part_end))
            else:
                ids.append(id)
                places.append(_without_space(normal, begin, end))
        begins, stops = np.array(places, np.int64).reshape(-1, 2).T
        piece_starts = np.append(starts, len(text))[begins]
        piece_ends = np.where(stops > begins, np.append(ends, 0)[stops - 1], piece_starts)
        return AlignedPieces(
            np.array(ids, np.int32), piece_starts.astype(np.int32), piece_ends.astype(np.int32)
        )

    def _clean_up(self, text):
        text = _SURROGATES.sub("\ufffd", text)  # as `Tokenizer`: SentencePiece would raise
        if self._config.cleanup == "reference":
            return clean_up_tracked(text, self._config.lower_case, self._config.strip_accents)
        every = np.arange(len(text))
        return text, every, every + 1

    def _cut(self, cleaned):
        """Yields id, begin and end of each piece as SentencePiece cuts: places in its normal
        text."""
        begin = 0
        ids, pieces = self._processor.encode(cleaned), self._processor.encode(cleaned, out_type=str)
        for id, piece in zip(ids, pieces, strict=True):
            if id not in self._byte_ids:
                end = begin + len(piece)
                yield id, begin, end
                begin = end
            elif 0x80 <= int(piece[3:5], 16) < 0xC0:  # <0x9F>: goes on with the same character
                yield id, begin - 1, begin
            else:
                yield id, begin, begin + 1
                begin += 1

    def _split(self, id, begin, end):
        """Yields the same for the pieces put in place of one that ends in digit and comma."""
        *number, comma = self._digit_comma[id]
        pieces = [self._piece_of(part).replace(SPACE, "") for part in number]
        begin += len(self._piece_of(id)) - len(self._piece_of(id).lstrip(SPACE))
        if sum(map(len, pieces)) != end - 1 - begin:  # an unknown digit: each may be any of them
            yield from ((part, begin, end - 1) for part in number)
        else:
            for part, piece in zip(number, pieces, strict=True):
                yield part, begin, begin + len(piece)
                begin += len(piece)
        yield comma, end - 1, end


def check_tracks_places(tokenizer: Tokenizer):
    """Makes sure that the places of pieces can be told, else raises InputError."""
    if tokenizer.config.kind != "unigram":
        raise InputError(
            "Question answering needs a SentencePiece vocabulary, as with google-research/albert. "
            f"Received: one of the kind `{tokenizer.config.kind}`."
        )


def _without_space(normal, begin, end):
    """Returns begin and end without the space around a piece, if it is more than that."""
    piece = normal[begin:end]
    stripped = piece.strip(SPACE)
    if not stripped:
        return begin, end
    first = begin + piece.index(stripped)
    return first, first + len(stripped)
