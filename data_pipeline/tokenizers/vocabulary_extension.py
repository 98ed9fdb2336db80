"""Extends a vocabulary with new pieces, for text that its own pieces split too finely.

A unigram model chooses the split of a text with the highest sum of scores, so any run of its chosen
pieces is the best split of that run. A new piece joins such a run. Its score is the sum of the
scores it replaces, plus a little for each piece saved. So it wins wherever the old model would
have chosen that run, and the longer of two new pieces wins. Text without such a run is split as
before, except where two splits were almost equally good.
"""

import collections
import hashlib
import heapq
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import (
    JOINED_MARGIN,
    SPACE,
    TrainedVocabulary,
    is_unigram,
    read_model,
    write_tokenizer_files,
)

#: SentencePiece's longest piece, in characters, and its penalty for unknown characters.
_LONGEST, _UNKNOWN_PENALTY = 16, 10.0
_NORMAL = 1  # a type of piece in `sentencepiece_model.proto`


class _OldPieces(NamedTuple):
    """The old pieces: scores of normal ones, the score of unknown characters, special pieces."""

    scores: dict[str, float]
    unknown: float
    special: frozenset[str]


def extend_vocabulary(
    tokenizer: Tokenizer, corpus_texts: Iterable[str], out: str | Path, add: int
) -> TrainedVocabulary:
    """Writes a tokenizer with additional pieces: those that save the most pieces on a corpus.

    All old pieces keep their ids; the new ones follow. They are words or parts of words, of letters
    only, and single characters that were unknown. The same texts give the same bytes.

    Raises InputError if the tokenizer is not a unigram model, if fewer than `add` runs of pieces
    occur twice in the corpus, or if the folder `out` is not empty.

    Source: Pieces are chosen as in byte-pair encoding, by pieces saved instead of pairs; for adding
    to a vocabulary at all AVocaDo (Hong et al. 2021, https://arxiv.org/abs/2110.13434).
    """
    check_output_folder(out)
    if add < 1:
        raise InputError(f"`add` must be at least 1. Received: {add}.")
    if tokenizer.config.kind != "unigram" or not is_unigram(tokenizer.model_bytes):
        raise InputError(
            "Only a unigram model of SentencePiece without byte pieces can be extended. "
            "The tokenizer is of another kind."
        )
    model = read_model(tokenizer.model_bytes)
    pieces = model.pieces
    scores = {each.piece: each.score for each in pieces if (each.type or _NORMAL) == _NORMAL}
    special = frozenset(each.piece for each in pieces) - scores.keys()
    old = _OldPieces(scores, min(scores.values()) - _UNKNOWN_PENALTY, special)
    chosen = _choose_runs(_count_words(tokenizer, corpus_texts), old, add)
    if len(chosen) < add:
        raise InputError(f"`add` must be at most {len(chosen)} for this corpus. Received: {add}.")
    for run in chosen:
        score = sum(old.scores.get(piece, old.unknown) for piece in run)
        score += JOINED_MARGIN * (len(run) - 1)
        pieces.add(piece="".join(run), score=score, type=_NORMAL)
    content = model.SerializeToString(deterministic=True)
    digest = hashlib.sha256(content).hexdigest()
    config = tokenizer.config.replace(
        vocab_size=len(pieces), sha256=digest, extends=tokenizer.digest
    )
    with whole_folder(out) as folder:
        write_tokenizer_files(folder, content, config)
    return TrainedVocabulary(Path(out), len(pieces), digest)


def is_extension(old: Tokenizer, new: Tokenizer) -> bool:
    """Returns whether a tokenizer starts with all pieces of another and cleans up text alike."""
    size = old.vocab_size
    if new.config.kind != old.config.kind:
        return False
    same_file = {"vocab_size": size, "sha256": old.config.sha256}
    if old.config.kind == "unigram":
        same_file["extends"] = old.config.extends
    return (
        new.vocab_size >= size
        and new.model.vocabulary[:size] == old.model.vocabulary
        and new.model.special_ids == old.model.special_ids
        and new.config.replace(**same_file) == old.config
    )


def segments_of_added(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """Splits each added piece of an extended vocabulary, in the order of ids, into old ids.

    Raises InputError if `new` is not an extension of `old`.
    """
    if not is_extension(old, new):
        raise InputError(
            "The new vocabulary must start with all pieces of the old one, in their order and with "
            f"the same clean-up. Received: digests {old.digest} (old) and {new.digest} (new)."
        )
    segments = []
    for id in range(old.vocab_size, new.vocab_size):
        starts_word, text = new.shown(id)
        ids = old.encode(text) if starts_word else old.continuation_ids(text)
        segments.append(ids or [old.unk_id])
    return segments


def _count_words(tokenizer, texts):
    """Counts the words of texts: dict of tuple of pieces -> count.

    SentencePiece splits at white space first, so a word has the same pieces everywhere. An unknown
    piece is its text.
    """
    spelled = collections.Counter(word for text in texts for word in text.split())
    counts = collections.Counter()
    for word, count in spelled.items():
        pieces = []
        for piece in tokenizer.pieces(word):
            is_unknown = tokenizer.id_of(piece) == tokenizer.unk_id
            pieces += piece if is_unknown else [piece]  # an unknown run becomes its characters
        counts[tuple(pieces)] += count
    return counts


def _choose_runs(words, old, number):
    """Finds, one after the other, the runs of pieces whose joining saves the most pieces.

    Returns at most `number` tuples of old pieces; fewer if nothing more occurs twice.
    """
    # Each word is a list of parts, and each part a tuple of old pieces that are joined so far.
    parts = [[(piece,) for piece in word] for word in words]
    counts = list(words.values())
    savings, occurrences = collections.Counter(), collections.Counter()
    words_of = collections.defaultdict(set)  # run -> indices of the words that contain it

    def count_runs(index, sign):
        for run, saved in _joinable_runs(parts[index], old):
            savings[run] += sign * saved * counts[index]
            occurrences[run] += sign * counts[index]
            words_of[run].add(index)

    for index in range(len(parts)):
        count_runs(index, 1)
    heap = [(-saved, run) for run, saved in savings.items() if occurrences[run] > 1]
    heapq.heapify(heap)
    chosen, taken = [], old.scores.keys() | old.special
    while heap and len(chosen) < number:
        saved, run = heapq.heappop(heap)
        if -saved != savings[run]:  # runs chosen since then have changed its savings
            if savings[run] > 0 and occurrences[run] > 1:
                heapq.heappush(heap, (-savings[run], run))
            continue
        savings[run] = 0
        if "".join(run) in taken:  # two splits of it were equally good
            continue
        chosen.append(run)
        taken.add("".join(run))
        for index in sorted(words_of[run]):
            joined = _join(parts[index], run)
            if joined != parts[index]:
                count_runs(index, -1)
                parts[index] = joined
                count_runs(index, 1)
    return chosen


def _joinable_runs(word, old):
    """Yields the runs of pieces that may be joined in a word, and how many pieces that saves."""
    for first, part in enumerate(word):
        if _is_unknown(part, old):
            yield part, 1  # nothing is saved, but the character is no longer unknown
        pieces = ()
        for last in range(first, len(word)):
            pieces += word[last]
            if not _may_join(word[last], old) or sum(map(len, pieces)) > _LONGEST:
                break
            if last > first:
                yield pieces, last - first


def _is_unknown(part, old):
    if len(part) > 1 or part[0] in old.scores or part[0] in old.special:
        return False
    return unicodedata.category(part[0])[0] not in "CZ"  # control characters and spaces


def _may_join(part, old):
    """Returns whether a part may become part of a longer piece: only letters, nothing special."""
    text = "".join(part).removeprefix(SPACE)
    is_letters = all(unicodedata.category(character)[0] in "LM" for character in text)
    return is_letters and old.special.isdisjoint(part)


def _join(word, run):
    """Joins the parts of a word wherever whole parts make up a run of old pieces."""
    joined, start = [], 0
    while start < len(word):
        end, pieces = start, ()
        while end < len(word) and len(pieces) < len(run):
            pieces += word[end]
            end += 1
        is_run = pieces == run
        joined.append(run if is_run else word[start])
        start = end if is_run else start + 1
    return joined
