"""Character offsets of the pieces of WordPiece and of byte-level BPE, see `offsets`.

Neither reorders text: the pieces, one after the other, are what remains of the characters. So the
length of each piece and the number of characters (WordPiece) or bytes (BPE) that remain of each
character of the raw text are enough. `serving/graph/piece_aligners.py` does the same in a graph.
"""

import functools

import numpy as np

from data_pipeline.tokenizers.basic_words import is_space
from data_pipeline.tokenizers.byte_bpe import bytes_of
from data_pipeline.tokenizers.sentencepiece_model import replace_surrogates
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.wordpiece import CONTINUATION


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
