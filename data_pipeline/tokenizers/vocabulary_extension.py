"""A vocabulary with more pieces behind the old ones, for text the old ones cut too small.

A unigram model cuts a text where the sum of scores is highest, so any stretch of its best pieces is
the best way to cut that stretch. A new piece joins such a stretch. Its score is the sum of the
scores it replaces and a little more for each piece saved: it wins wherever the old model would have
cut so, the longer of two wins, and text in which no such stretch occurs is cut as before, but for
ways to cut that were all but equally good.
"""

import collections
import hashlib
import heapq
import unicodedata
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.tokenizers.unigram import is_supported
from data_pipeline.tokenizers.vocabulary import TrainedVocabulary, read_model, write_tokenizer_files
from data_pipeline.tokenizers.word_starts import SPACE

#: Score for each piece saved: above the rounding of long sums, below what tells words apart.
_MARGIN = 0.01
#: SentencePiece's longest piece, in characters, and its penalty for what is unknown.
_LONGEST, _UNKNOWN_PENALTY = 16, 10.0
_NORMAL = 1  # a type of piece in `sentencepiece_model.proto`


class _Old(NamedTuple):
    """The old pieces: scores of normal ones, the score of unknown characters, special pieces."""

    scores: dict[str, float]
    unknown: float
    special: frozenset[str]


def extend_vocabulary(tokenizer, corpus_texts, out, add) -> TrainedVocabulary:
    """Writes a tokenizer that has more pieces, those that save most pieces on a corpus.

    All old pieces keep their ids; the new ones follow. They are words or parts of words, of letters
    only; and single characters that were unknown. The same texts give the same bytes.

    Args:
        tokenizer: Tokenizer. A unigram model.
        corpus_texts: iterable of str. Read once.
        out: path. The folder to write; it should not exist yet, or be empty.
        add: int. How many pieces to add.

    Returns:
        TrainedVocabulary.

    Raises:
        InputError: If the tokenizer is of another kind, the corpus has not that many stretches
            that occur twice, or `out` is not empty.

    Source:
        The choice is that of byte-pair encoding, by pieces saved and not by pairs; for adding to a
        vocabulary at all AVocaDo (Hong et al. 2021, https://arxiv.org/abs/2110.13434).
    """
    check_output_folder(out)
    if add < 1:
        raise InputError(f"`add` should be at least 1. Received: {add}.")
    if tokenizer.config.kind != "unigram" or not is_supported(tokenizer.model_bytes):
        raise InputError("The tokenizer should be a unigram model of SentencePiece. It is not.")
    model = read_model(tokenizer.model_bytes)
    pieces = model.pieces
    scores = {each.piece: each.score for each in pieces if (each.type or _NORMAL) == _NORMAL}
    special = frozenset(each.piece for each in pieces) - scores.keys()
    old = _Old(scores, min(scores.values()) - _UNKNOWN_PENALTY, special)
    chosen = _choose(_count_words(tokenizer, corpus_texts), old, add)
    if len(chosen) < add:
        raise InputError(f"`add` should be at most {len(chosen)} for this corpus. Received: {add}.")
    for segment in chosen:
        score = sum(old.scores.get(piece, old.unknown) for piece in segment)
        score += _MARGIN * (len(segment) - 1)
        pieces.add(piece="".join(segment), score=score, type=_NORMAL)
    content = model.SerializeToString(deterministic=True)
    digest = hashlib.sha256(content).hexdigest()
    config = tokenizer.config.replace(vocab_size=len(pieces), sha256=digest)
    with whole_folder(out) as folder:
        write_tokenizer_files(folder, content, config)
    return TrainedVocabulary(Path(out), len(pieces), digest)


def is_extension(old, new) -> bool:
    """Tells whether a tokenizer begins with all pieces of another and cleans text up alike."""
    size = old.vocab_size
    same_file = {"vocab_size": size, "sha256": old.config.sha256}
    special = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")
    return (
        new.vocab_size >= size
        and type(new) is type(old)
        and all(new.piece_of(id) == old.piece_of(id) for id in range(size))
        and all(getattr(new, name) == getattr(old, name) for name in special)
        and new.config.replace(**same_file) == old.config
    )


def segments_of_added(old, new) -> list[list[int]]:
    """Cuts the pieces that a vocabulary has besides those of an older one into pieces of that.

    Args:
        old: Tokenizer.
        new: Tokenizer. With `is_extension(old, new)`.

    Returns:
        list of lists of int. Old ids, at least one for each new piece, in the order of their ids.

    Raises:
        InputError: If it is no extension.
    """
    if not is_extension(old, new):
        raise InputError(
            "The new vocabulary should begin with all pieces of the old one, in their order and "
            f"cleaned up alike. Received: digests {old.digest} and then {new.digest}."
        )
    segments = []
    for id in range(old.vocab_size, new.vocab_size):
        opens_word, text = new.shown(id)
        ids = old.encode(text) if opens_word else old.continuation_ids(text)
        segments.append(ids or [old.unk_id])
    return segments


def _count_words(tokenizer, texts):
    """Cuts the words of texts: dict of tuple of pieces -> how often; an unknown one as it stands.

    SentencePiece cuts at white space first, so that a word is cut alike wherever it stands.
    """
    spelled = collections.Counter(word for text in texts for word in text.split())
    counts = collections.Counter()
    for word, count in spelled.items():
        pieces = []
        for piece in tokenizer.pieces(word):
            unknown = tokenizer.id_of(piece) == tokenizer.unk_id
            pieces += piece if unknown else [piece]  # an unknown run is its characters
        counts[tuple(pieces)] += count
    return counts


def _choose(words, old, number):
    """Finds the stretches whose joining saves most pieces, one after the other.

    Args:
        words: dict of tuple of str -> int. As of `_count_words`.
        old: _Old.
        number: int. How many.

    Returns:
        list of tuples of str, the old pieces of each new one; fewer if nothing occurs twice.
    """
    # Each word is a list of parts, and each part a tuple of old pieces that stand together by now.
    parts = [[(piece,) for piece in word] for word in words]
    counts = list(words.values())
    savings, seen, where = collections.Counter(), collections.Counter(), {}
    for place, word in enumerate(parts):
        for stretch, saved in _stretches(word, old):
            savings[stretch] += saved * counts[place]
            seen[stretch] += counts[place]
            where.setdefault(stretch, set()).add(place)
    heap = [(-saved, stretch) for stretch, saved in savings.items() if seen[stretch] > 1]
    heapq.heapify(heap)
    chosen, taken = [], old.scores.keys() | old.special
    while heap and len(chosen) < number:
        saved, stretch = heapq.heappop(heap)
        if -saved != savings[stretch]:  # others have taken some of it since
            if savings[stretch] > 0 and seen[stretch] > 1:
                heapq.heappush(heap, (-savings[stretch], stretch))
            continue
        savings[stretch] = 0
        if "".join(stretch) in taken:  # two ways to cut it were equally good
            continue
        chosen.append(stretch)
        taken.add("".join(stretch))
        for place in sorted(where[stretch]):
            word = parts[place]
            joined = _join(word, stretch)
            if joined == word:
                continue
            for sign, version in ((-1, word), (1, joined)):
                for other, gain in _stretches(version, old):
                    savings[other] += sign * gain * counts[place]
                    seen[other] += sign * counts[place]
            parts[place] = joined
    return chosen


def _stretches(word, old):
    """Yields what may be joined in a word, and how many pieces that saves."""
    for first, part in enumerate(word):
        if _is_unknown(part, old):
            yield part, 1  # nothing is saved, but it is no longer unknown
        pieces = ()
        for last in range(first, len(word)):
            pieces += word[last]
            if not _joins(word[last], old) or sum(map(len, pieces)) > _LONGEST:
                break
            if last > first:
                yield pieces, last - first


def _is_unknown(part, old):
    if len(part) > 1 or part[0] in old.scores or part[0] in old.special:
        return False
    return unicodedata.category(part[0])[0] not in "CZ"  # control characters and spaces


def _joins(part, old):
    """Tells whether a part may stand in a longer piece: it is of letters, and nothing special."""
    text = "".join(part).removeprefix(SPACE)
    letters = all(unicodedata.category(character)[0] in "LM" for character in text)
    return letters and old.special.isdisjoint(part)


def _join(word, stretch):
    """Joins all places in a word where the old pieces of a stretch stand in whole parts."""
    joined, place = [], 0
    while place < len(word):
        end, pieces = place, ()
        while end < len(word) and len(pieces) < len(stretch):
            pieces += word[end]
            end += 1
        if pieces == stretch:
            joined.append(stretch)
            place = end
        else:
            joined.append(word[place])
            place += 1
    return joined
