"""Sentences → stretches of them, one for each instance, in every input format.

Where a stretch ends follows from the sentence it begins with: from the lengths after it, and from
what is drawn under its key. So ends are computed for many sentences at once, and all that is left
to do one by one is to go from each stretch to the next.
"""

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import key_of, permute, subkeys, uniform

_STREAM = 1
#: Sentences whose stretches are computed at once; bounds memory, and stays in the cache.
_AT_ONCE = 1 << 14


class Stretches(NamedTuple):
    """N stretches of sentences; sentences are numbered throughout the shard.

    Attributes:
        begins: int64 [N]. First sentence.
        middles: int64 [N]. First sentence of the second segment; `ends` if there is but one.
        ends: int64 [N]. The sentence after the last.
        documents: int64 [N]. Document of the first sentence.
        targets: int64 [N]. Pieces aimed at.
        coins: bool [N]. Drawn for the label, True half of the time.
        keys: uint64 [N]. Made of document, copy and first sentence.
    """

    begins: np.ndarray
    middles: np.ndarray
    ends: np.ndarray
    documents: np.ndarray
    targets: np.ndarray
    coins: np.ndarray
    keys: np.ndarray


def cut_stretches(shard, config, copy):
    """Cuts all documents of a shard into stretches.

    "segment-pair": sentences are gathered until they reach the target. "sentence-pair": two by two.
    "full-sentences" and "doc-sentences": as many as fit the target, at least one; the former go on
    across documents. Of a stretch whose second segment is taken from another document, the
    sentences not used begin the next one.

    Copies of formats of one segment differ by their short sequences. Without any, those of
    "doc-sentences" are cut alike, and those of "full-sentences" nearly so: runs begun at different
    sentences soon meet at the same one, and go on together.

    Args:
        shard: Shard.
        config: PretrainingDataConfig.
        copy: int.

    Returns:
        Stretches, ordered by their first sentence.

    Source:
        ALBERT, section 3.1; `create_instances_from_document` in google-research/albert,
        `create_pretraining_data.py`; RoBERTa, section 4.2.
    """
    document_keys = subkeys(shard.keys, copy)
    limits = _limits(shard, config, copy)
    begins, here, num_sentences = [], 0, len(shard.begins)
    for first in range(0, num_sentences, _AT_ONCE):
        upto = min(first + _AT_ONCE, num_sentences)
        possible = _stretches_from(np.arange(first, upto), shard, config, document_keys, limits)
        following = possible.ends
        if config.label_objective == "nsp":
            following = np.where(possible.coins, possible.middles, possible.ends)
        following = following.tolist()
        while here < upto:
            begins.append(here)
            here = following[here - first]
    return _stretches_from(np.array(begins, np.int64), shard, config, document_keys, limits)


def cut_long_sentences(shard, starts_word, longest):
    """Cuts sentences that are too long into parts, at word starts where there are any.

    Args:
        shard: Shard.
        starts_word: bool [V]. Pieces that open a word.
        longest: int. Pieces that a part may have.

    Returns:
        Shard with the parts for sentences.
    """
    sentences, cuts = [], []
    for sentence in np.flatnonzero(shard.ends - shard.begins > longest).tolist():
        begin, end = int(shard.begins[sentence]), int(shard.ends[sentence])
        word_starts = (np.flatnonzero(starts_word[shard.ids[begin:end]]) + begin).tolist()
        while end - begin > longest:
            place = bisect_right(word_starts, begin + longest) - 1
            if place >= 0 and word_starts[place] > begin:
                begin = word_starts[place]
            else:
                begin += longest
            sentences.append(sentence)
            cuts.append(begin)
    if not cuts:
        return shard
    sentences = np.array(sentences)
    return shard._replace(
        begins=np.insert(shard.begins, sentences + 1, cuts),
        ends=np.insert(shard.ends, sentences, cuts),
        first_sentences=shard.first_sentences + np.searchsorted(sentences, shard.first_sentences),
    )


def _limits(shard, config, copy):
    """Returns for each document the sentence that a stretch begun in it may not go beyond."""
    num_documents = len(shard.keys)
    if config.input_format != "full-sentences" or not num_documents:
        return shard.first_sentences[1:]
    # The copy begins at one document, goes on to the last, and then from the first up to its own.
    key = key_of("rotation", shard.keys[0])
    begun_at = permute(copy % num_documents, num_documents, key)[0]
    before = np.arange(num_documents) < begun_at
    return np.where(before, shard.first_sentences[begun_at], shard.first_sentences[-1])


def _stretches_from(sentences, shard, config, document_keys, limits):
    """Computes the Stretches that begin, or would begin, with the given sentences."""
    documents = np.searchsorted(shard.first_sentences, sentences, side="right") - 1
    copy_keys = document_keys[documents]
    keys = subkeys(copy_keys, sentences - shard.first_sentences[documents])
    short, length, cut, coin = uniform(keys, _STREAM, 4).T
    if config.short_sequences == "document":
        short, length = uniform(subkeys(copy_keys, 0), _STREAM, 2).T
    longest = config.max_num_tokens
    shorter = 2 + (length * (longest - 1)).astype(np.int64)
    targets = np.where(short < config.short_seq_prob, shorter, longest)

    upto = shard.begins[sentences] + targets
    if config.input_format == "segment-pair":
        ends = np.searchsorted(shard.ends, upto) + 1
    elif config.input_format == "sentence-pair":
        ends = sentences + 2
    else:
        ends = np.maximum(np.searchsorted(shard.ends, upto, side="right"), sentences + 1)
    ends = np.minimum(ends, limits[documents])
    middles = sentences + 1 + (cut * (ends - sentences - 1)).astype(np.int64)
    return Stretches(sentences, middles, ends, documents, targets, coin < 0.5, keys)
