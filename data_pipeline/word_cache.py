"""Encodes text word by word and remembers the words; SentencePiece itself is several times slower.

No piece crosses a space, so the ids of a text are those of its words, end to end. That holds for
most models, and `splits_at_spaces` tells which. One thing can still differ: a unigram model adds
up scores from the beginning of the text, and rounds. Where two ways to cut a word have almost the
same score, the words before decide between them. Texts with such a word, and all others about
which there is a doubt, are left to SentencePiece whole. So the ids are the same in every case.
"""

import array
import itertools
import math

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from data_pipeline.vocabulary import read_model

#: How many words are remembered before all are forgotten; about 200 bytes each.
MAX_WORDS = 500_000

#: A longer text, in characters, is left to SentencePiece: the larger a score, the more is rounded.
MAX_TEXT_CHARS = 1000

#: So is a text whose words are longer on average. It is Chinese, say, and no word comes back.
MAX_MEAN_WORD_CHARS = 16

#: A word with a lower score than this for each of its characters is left to SentencePiece.
_LOWEST_CHAR_SCORE = -8.0

#: SentencePiece adds up scores in float32: a sum x is off by at most half of x times this. The
#: other half is a margin of safety.
_ROUNDING = 2.0**-23

_SPACE = "▁"
_NORMAL, _USER_DEFINED, _UNUSED = 1, 4, 5  # types of pieces in `sentencepiece_model.proto`
_UNIGRAM, _BPE = 1, 2

# As in SentencePiece, `unigram_model.cc`.
_UNKNOWN_PENALTY = 10.0
_USER_DEFINED_SCORE = -0.1


class WordCache:
    """The words of one SentencePiece model met so far."""

    def __init__(self, processor, model_bytes, finish):
        """Starts without words.

        Args:
            processor: SentencePieceProcessor of the model.
            model_bytes: bytes. The model.
            finish: function of list of int -> list of int. What becomes of the ids; it has to
                treat each id for itself.
        """
        self._processor = processor
        self._finish = finish
        self._usable = splits_at_spaces(model_bytes)
        self._words = _Memory(self._encode_word)
        self._cutter = None
        if self._usable and _SETTINGS.FromString(model_bytes).trainer.model_type == _UNIGRAM:
            self._cutter = _UnigramCutter(read_model(model_bytes).pieces)
            self._runs = _Memory(self._encode_run)

    def encode(self, texts) -> tuple[np.ndarray, np.ndarray]:
        """Encodes a list of str (without surrogates): see `Tokenizer.encode_sentences`."""
        encoded = list(map(self._by_words, texts)) if self._usable else [None] * len(texts)
        missing = [place for place, ids in enumerate(encoded) if ids is None]
        whole = self._processor.encode([texts[place] for place in missing], num_threads=1)
        for place, ids in zip(missing, whole, strict=True):
            encoded[place] = self._as_bytes(ids)
        ids = np.frombuffer(bytearray().join(encoded), np.int32)
        return ids, np.fromiter(map(len, encoded), np.int64, len(encoded)) // ids.itemsize

    def _by_words(self, text):
        words = text.split(" ")
        if len(text) > MAX_TEXT_CHARS or len(text) > MAX_MEAN_WORD_CHARS * len(words):
            return None
        encoded = list(map(self._words.__getitem__, words))
        try:
            return b"".join(encoded)
        except TypeError:  # there is None among them
            return None

    def _encode_word(self, word):
        """Returns the ids of a word as bytes, or None if they may depend on the text around."""
        if _SPACE in word or "\0" in word:
            return None
        if self._cutter is None:  # BPE compares scores of single pieces and adds none up
            return self._as_bytes(self._processor.encode(word))
        runs = [self._runs[run] for run in self._cutter.runs(self._processor.normalize(word))]
        if None in runs:
            return None
        encoded, scores = zip(*runs, strict=True)
        return b"".join(encoded) if sum(scores) >= _LOWEST_CHAR_SCORE * (len(word) + 1) else None

    def _encode_run(self, run):
        cut = self._cutter.cut(run)
        return None if cut is None else (self._as_bytes(cut[0]), cut[1])

    def _as_bytes(self, ids):
        return array.array("i", self._finish(ids)).tobytes()


class _Memory(dict):
    """Remembers what a function returned for as many keys as fit."""

    def __init__(self, function):
        self._function = function

    def __missing__(self, key):
        if len(self) >= MAX_WORDS:
            self.clear()
        value = self[key] = self._function(key)
        return value


class _UnigramCutter:
    """Cuts words as a unigram model does, and tells when the cut is a close call."""

    def __init__(self, pieces):
        self._unknown = (None, min(_normal_scores(pieces), default=0.0) - _UNKNOWN_PENALTY)
        known = {}
        for id, piece in enumerate(pieces):
            if (piece.type or _NORMAL) == _NORMAL:
                known[piece.piece] = (id, piece.score)
            elif piece.type == _USER_DEFINED:
                known[piece.piece] = (id, _USER_DEFINED_SCORE)
        self._pairs = {pair for piece in known for pair in itertools.pairwise(piece)}
        # What no piece begins with is not among the keys, so that a search can stop there.
        beginnings = (piece[:end] for piece in known for end in range(1, len(piece)))
        self._pieces = dict.fromkeys(beginnings) | known

    def runs(self, text):
        """Cuts between any two characters that no piece holds side by side: every way does."""
        pairs = list(itertools.pairwise(text))
        if self._pairs.issuperset(pairs):
            return [text]
        cuts = [place for place, pair in enumerate(pairs, 1) if pair not in self._pairs]
        return [text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])]

    def cut(self, run):
        """Returns the ids of the best way to cut and its score, or None if it is in doubt.

        It is in doubt if another way is almost as good, or if it takes an unknown character,
        which might melt into the next one.
        """
        size = len(run)
        best = [0.0] + [-math.inf] * size  # of all ways that end there
        second = [-math.inf] * (size + 1)
        last = [None] * (size + 1)  # where the best way's last piece starts, and its id
        pieces = self._pieces
        for start in range(size):
            for end in range(start + 1, size + 1):
                text = run[start:end]
                piece = pieces.get(text)
                if piece is None:
                    if end == start + 1:
                        piece = self._unknown
                    elif text in pieces:
                        continue
                    else:
                        break
                score = best[start] + piece[1]
                if score > best[end]:
                    second[end] = best[end]
                    best[end] = score
                    last[end] = (start, piece[0])
                elif score > second[end]:
                    second[end] = score
        # A way takes at most `size` additions. No sum is larger than what all words and this run
        # can come to, as no score is positive.
        largest = -_LOWEST_CHAR_SCORE * (MAX_TEXT_CHARS + 1) - self._unknown[1] * size
        doubt = 2 * size * largest * _ROUNDING
        ids = []
        end = size
        while end:
            start, id = last[end]
            if id is None or best[end] - second[end] <= doubt:
                return None
            ids.append(id)
            end = start
        return ids[::-1], best[size]


def splits_at_spaces(model_bytes) -> bool:
    """Tells whether the ids of a text are those of its words, near-ties apart.

    Args:
        model_bytes: bytes. A SentencePiece model.

    Returns:
        bool. False also where it is merely not sure.

    Source:
        `normalizer.cc`, `unigram_model.cc`, `bpe_model.cc` and `PopulateSentencePieceText` in
        google/sentencepiece 0.2.1.
    """
    pieces = read_model(model_bytes).pieces
    settings = _SETTINGS.FromString(model_bytes)
    types = {piece.piece: piece.type or _NORMAL for piece in pieces}
    unigram = settings.trainer.model_type == _UNIGRAM
    return (
        (unigram or settings.trainer.model_type == _BPE)
        and settings.normalizer.add_dummy_prefix
        and settings.normalizer.escape_whitespaces
        and settings.normalizer.remove_extra_whitespaces
        and not settings.trainer.treat_whitespace_as_suffix
        and not _touches_spaces(settings.normalizer.precompiled_charsmap)
        and not any(" " in piece or _SPACE in piece[1:] for piece in types)
        # If `▁` were unknown, it would melt into unknown characters on both sides.
        and types.get(_SPACE) == _NORMAL
        # BPE takes an unused piece apart as it was put together last, be it in another word.
        and (unigram or _UNUSED not in types.values())
        # A positive score would make user-defined pieces the better the longer they are.
        and (not unigram or all(score <= 0 for score in _normal_scores(pieces)))
    )


def _normal_scores(pieces):
    return [piece.score for piece in pieces if (piece.type or _NORMAL) == _NORMAL]


def _touches_spaces(charsmap):
    """Tells whether a rule of the normaliser has a space in its source or `▁` in its target.

    The sources are a trie: four bytes of length, then units of four bytes (`darts.h`). A unit
    holds the label of the step that leads to it, and where its own steps begin.
    """
    if not charsmap:
        return False
    size = int.from_bytes(charsmap[:4], "little")
    if _SPACE.encode() in charsmap[4 + size :]:
        return True
    units = np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.int64)
    labels = units & 0x800000FF  # the highest bit marks a value, which no step leads to
    offsets = (units >> 10) << ((units & 0x200) >> 6)
    places = np.arange(len(units))
    begins = (places ^ offsets) % len(units)
    from_begin = (places ^ (labels & 0xFF)) % len(units)
    is_begin = np.zeros(len(units), bool)
    is_begin[begins[0]] = True
    known = 0
    while known < np.count_nonzero(is_begin):
        known = np.count_nonzero(is_begin)
        reached = is_begin[from_begin] & (labels <= 0xFF)
        is_begin[begins[reached]] = True
    return bool((labels[reached] == ord(" ")).any())


def _settings_message():
    """Those settings of a model that `read_model` leaves out."""
    field = descriptor_pb2.FieldDescriptorProto
    model = descriptor_pb2.DescriptorProto(name="Settings")
    for message, place, name, number, kind, default in (
        ("trainer", 2, "model_type", 3, field.TYPE_INT32, "1"),
        ("trainer", 2, "treat_whitespace_as_suffix", 24, field.TYPE_BOOL, "false"),
        ("normalizer", 3, "precompiled_charsmap", 2, field.TYPE_BYTES, None),
        ("normalizer", 3, "add_dummy_prefix", 3, field.TYPE_BOOL, "true"),
        ("normalizer", 3, "remove_extra_whitespaces", 4, field.TYPE_BOOL, "true"),
        ("normalizer", 3, "escape_whitespaces", 5, field.TYPE_BOOL, "true"),
    ):
        if message not in [known.name for known in model.nested_type]:
            model.nested_type.add(name=message)
            model.field.add(name=message, number=place, type=11, label=1, type_name=message)
        inner = model.nested_type[-1]
        inner.field.add(name=name, number=number, type=kind, label=1, default_value=default)
    file = descriptor_pb2.FileDescriptorProto(name="model_settings.proto", message_type=[model])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Settings"))


_SETTINGS = _settings_message()
