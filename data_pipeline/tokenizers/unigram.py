"""Encodes text as a SentencePiece unigram model does, id for id, and several times as fast.

Such a model cuts a text into the pieces with the highest sum of scores. Sums are rounded to
float32, and where two ways to cut are almost equally good, that decides between them. So the loops
here do the additions and comparisons of SentencePiece, in its types and in its order.

Before that, SentencePiece itself normalises the text. Only ASCII has a quicker way, a table of what
becomes of each character, if the model shows that characters do not depend on each other.
"""

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from data_pipeline.compiled import compiled
from data_pipeline.tokenizers.ascii_normalizer import SPACE, ascii_table, normalize_ascii
from data_pipeline.tokenizers.piece_trie import lay_out_trie
from data_pipeline.tokenizers.vocabulary import read_model

_NORMAL, _USER_DEFINED, _BYTE = 1, 4, 6  # types of pieces in `sentencepiece_model.proto`
_UNIGRAM = 1

_MAX_SCORE = 1e20  # sums of higher scores might overflow
_UNKNOWN_PENALTY = np.float32(10)
_USER_DEFINED_PENALTY = 0.1
_LOWEST_MAXIMUM = np.finfo(np.float32).tiny  # where SentencePiece's search for it starts


def is_supported(model_bytes) -> bool:
    """Tells whether `UnigramEncoder` can stand in for SentencePiece.

    Args:
        model_bytes: bytes. A SentencePiece model.

    Returns:
        bool. True for unigram models without byte fallback (and without absurd scores or pieces).
    """
    pieces = read_model(model_bytes).pieces
    scores = _normal_scores(pieces)
    return (
        _SETTINGS.FromString(model_bytes).trainer.model_type == _UNIGRAM
        and not any(piece.type == _BYTE or "\0" in piece.piece for piece in pieces)
        and len(scores) > 0
        and all(abs(score) < _MAX_SCORE for score in scores)  # false for NaN
    )


class UnigramEncoder:
    """Encodes many texts in one go."""

    def __init__(self, processor, model_bytes):
        """Prepares the pieces: 0.15 s for 30,000.

        Args:
            processor: SentencePieceProcessor of the model.
            model_bytes: bytes. A model that `is_supported`.
        """
        self._normalize = processor.normalize
        pieces = read_model(model_bytes).pieces
        scores = _normal_scores(pieces)
        highest = np.float32(max([_LOWEST_MAXIMUM, *scores]))
        known = {}
        for id, piece in enumerate(pieces):
            text = piece.piece.encode()
            if (piece.type or _NORMAL) == _NORMAL:
                known[text] = id, piece.score
            elif piece.type == _USER_DEFINED:
                known[text] = id, float(np.float32(len(text)) * highest) - _USER_DEFINED_PENALTY
        self._trie = lay_out_trie(known)
        self._unknown = processor.unk_id(), np.float32(min(scores)) - _UNKNOWN_PENALTY
        charsmap = _SETTINGS.FromString(model_bytes).normalizer.precompiled_charsmap
        self._ascii = ascii_table(processor, pieces, charsmap)

    def encode(self, texts) -> tuple[np.ndarray, np.ndarray]:
        """Returns the ids of many texts.

        Args:
            texts: list of str, without surrogates.

        Returns:
            int32 array [T], the ids of all texts end to end; int64 array [N], how many each has.

        Source:
            `Model::EncodeOptimized` in `unigram_model.cc` and `PopulateSentencePieceText` in
            `sentencepiece_processor.cc`, google/sentencepiece 0.2.1.
        """
        is_plain = [len(self._ascii) > 0 and text.isascii() for text in texts]
        prepared = [
            text.encode() if plain else self._normalize(text.encode())
            for text, plain in zip(texts, is_plain, strict=True)
        ]
        ends = np.cumsum(np.fromiter(map(len, prepared), np.int64, len(prepared)))
        joined = np.frombuffer(b"".join(prepared), np.uint8)
        return _encode(
            joined, ends, np.array(is_plain, np.bool_), self._ascii, *self._trie, *self._unknown
        )


@compiled
def _encode(text, ends, is_plain, ascii, slots, scores, ids, unknown, unknown_score):
    longest, begin = 0, 0
    for stop in ends:
        longest, begin = max(longest, stop - begin), stop
    normal = np.empty(len(SPACE) * (longest + 1), np.uint8)
    # Of the best way to the end of each byte: its score, and where its last piece starts.
    best = np.empty(len(normal) + 1, np.float32)
    starts = np.empty(len(normal) + 1, np.int32)
    pieces = np.empty(len(normal) + 1, np.int32)
    encoded = np.empty(len(text) + len(ends), np.int32)
    lengths = np.empty(len(ends), np.int64)
    begin, total = 0, 0
    for place, stop in enumerate(ends):
        if is_plain[place]:
            size = normalize_ascii(text[begin:stop], ascii, normal)
        else:
            size = stop - begin
            normal[:size] = text[begin:stop]
        _cut(normal[:size], slots, scores, ids, unknown, unknown_score, best, starts, pieces)
        first, end = total, size
        while end > 0:
            # SentencePiece makes one piece of neighbouring unknown ones.
            if pieces[end] != unknown or total == first or encoded[total - 1] != unknown:
                encoded[total] = pieces[end]
                total += 1
            end = starts[end]
        encoded[first:total] = encoded[first:total][::-1].copy()
        lengths[place] = total - first
        begin = stop
    return encoded[:total].copy(), lengths


@compiled
def _cut(text, slots, scores, ids, unknown, unknown_score, best, starts, pieces):
    """Finds the best way to the end of a text; the last three arrays are written to.

    The indices in the inner loop are unsigned, or numba would ask of each whether it is negative.
    """
    size = len(text)
    best[: size + 1] = -np.inf
    best[0] = 0
    start = 0
    while start < size:
        lead = text[start]
        width = min(1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0), size - start)
        so_far = best[np.uint64(start)]
        has_character = False
        slot, base = np.uint32(0), slots[0, 0]
        for last in range(start, size):
            following = base + text[np.uint64(last)]
            if slots[following, 1] != slot:
                break
            slot, base = np.uint32(following), slots[following, 0]
            if scores[following] > -np.inf:
                end = np.uint64(last + 1)
                score = scores[following] + np.float64(so_far)  # rounded after the comparison
                if score > best[end]:
                    best[end], starts[end], pieces[end] = score, start, ids[following]
                has_character |= last + 1 == start + width
        if not has_character:
            end = np.uint64(start + width)
            score = unknown_score + so_far  # float32
            if score > best[end]:
                best[end], starts[end], pieces[end] = score, start, unknown
        start += width


def _normal_scores(pieces):
    return [piece.score for piece in pieces if (piece.type or _NORMAL) == _NORMAL]


def _settings_message():
    """Those settings of a model that `read_model` leaves out."""
    field = descriptor_pb2.FieldDescriptorProto
    model = descriptor_pb2.DescriptorProto(name="Settings")
    for message, place, name, number, kind, default in (
        ("trainer", 2, "model_type", 3, field.TYPE_INT32, str(_UNIGRAM)),
        ("normalizer", 3, "precompiled_charsmap", 2, field.TYPE_BYTES, None),
    ):
        inner = model.nested_type.add(name=message)
        inner.field.add(name=name, number=number, type=kind, label=1, default_value=default)
        model.field.add(name=message, number=place, type=11, label=1, type_name=message)
    file = descriptor_pb2.FileDescriptorProto(name="model_settings.proto", message_type=[model])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Settings"))


_SETTINGS = _settings_message()
