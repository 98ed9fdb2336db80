"""Sentences → spans of consecutive sentences, one for each instance, in every input format.

Where a span ends follows from its first sentence: from the lengths after it and from what is
sampled under its key. The ends are therefore computed for many sentences at once, and only the step
from one span to the next is a loop.
"""

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import key_of, permute, subkeys, uniform

_STREAM = 1
#: Sentences whose spans are computed at once; bounds memory, and fits the cache.
_SENTENCES_AT_ONCE = 1 << 14


class SentenceSpans(NamedTuple):
    """N spans of sentences; sentences are numbered throughout the block."""

    begins: np.ndarray  # int64 [N], first sentence
    middles: np.ndarray  # int64 [N], first sentence of the second segment, or `ends` without one
    ends: np.ndarray  # int64 [N], the sentence after the last
    documents: np.ndarray  # int64 [N], document of the first sentence
    targets: np.ndarray  # int64 [N], intended number of tokens
    coins: np.ndarray  # bool [N], fair coin that decides the label
    keys: np.ndarray  # uint64 [N], derived from document, copy and first sentence


def split_into_spans(block, config, copy):
    """Splits all documents of a DocumentBlock into SentenceSpans, ordered by their first sentence.

    "segment-pair": sentences are gathered until they reach the target. "sentence-pair": two
    sentences each. "full-sentences" and "doc-sentences": as many as fit the target, at least one;
    the former continue across documents. If the second segment of a span is taken from another
    document, the unused sentences begin the next span.

    Copies of single-segment formats differ by their short sequences. Without any, the copies of
    "doc-sentences" are split identically, and those of "full-sentences" nearly so: sequences of
    spans that begin at different sentences soon meet at the same one and coincide from there on.

    Source:
        ALBERT, section 3.1; `create_instances_from_document` in google-research/albert,
        `create_pretraining_data.py`; RoBERTa, section 4.2.
    """
    document_keys = subkeys(block.keys, copy)
    limits = _limits(block, config, copy)
    begins, current, num_sentences = [], 0, len(block.begins)
    for first in range(0, num_sentences, _SENTENCES_AT_ONCE):
        end = min(first + _SENTENCES_AT_ONCE, num_sentences)
        possible = _spans_from(np.arange(first, end), block, config, document_keys, limits)
        following = possible.ends
        if config.label_objective == "nsp":
            following = np.where(possible.coins, possible.middles, possible.ends)
        following = following.tolist()
        while current < end:
            begins.append(current)
            current = following[current - first]
    return _spans_from(np.array(begins, np.int64), block, config, document_keys, limits)


def split_long_sentences(block, starts_word, max_length):
    """Splits sentences of more than `max_length` tokens, at word starts where possible."""
    sentences, cuts = [], []
    for sentence in np.flatnonzero(block.ends - block.begins > max_length).tolist():
        begin, end = int(block.begins[sentence]), int(block.ends[sentence])
        word_starts = (np.flatnonzero(starts_word[block.ids[begin:end]]) + begin).tolist()
        while end - begin > max_length:
            last = bisect_right(word_starts, begin + max_length) - 1
            if last >= 0 and word_starts[last] > begin:
                begin = word_starts[last]
            else:
                begin += max_length
            sentences.append(sentence)
            cuts.append(begin)
    if not cuts:
        return block
    sentences = np.array(sentences)
    return block._replace(
        begins=np.insert(block.begins, sentences + 1, cuts),
        ends=np.insert(block.ends, sentences, cuts),
        first_sentences=block.first_sentences + np.searchsorted(sentences, block.first_sentences),
    )


def _limits(block, config, copy):
    """Returns for each document the sentence that a span that begins in it must not go beyond."""
    num_documents = len(block.keys)
    if config.input_format != "full-sentences" or not num_documents:
        return block.first_sentences[1:]
    # A copy begins at one document, continues to the last, and wraps around to the first.
    key = key_of("rotation", block.keys[0])
    first_document = permute(copy % num_documents, num_documents, key)[0]
    is_before = np.arange(num_documents) < first_document
    return np.where(is_before, block.first_sentences[first_document], block.first_sentences[-1])


def _spans_from(sentences, block, config, document_keys, limits):
    """Computes the SentenceSpans that begin, or would begin, with the given sentences."""
    documents = np.searchsorted(block.first_sentences, sentences, side="right") - 1
    copy_keys = document_keys[documents]
    keys = subkeys(copy_keys, sentences - block.first_sentences[documents])
    short, length, cut, coin = uniform(keys, _STREAM, 4).T
    if config.short_sequences == "document":
        short, length = uniform(subkeys(copy_keys, 0), _STREAM, 2).T
    longest = config.max_num_tokens
    shorter = 2 + (length * (longest - 1)).astype(np.int64)
    targets = np.where(short < config.short_seq_prob, shorter, longest)

    target_ends = block.begins[sentences] + targets
    if config.input_format == "segment-pair":
        ends = np.searchsorted(block.ends, target_ends) + 1
    elif config.input_format == "sentence-pair":
        ends = sentences + 2
    else:
        ends = np.maximum(np.searchsorted(block.ends, target_ends, side="right"), sentences + 1)
    ends = np.minimum(ends, limits[documents])
    middles = sentences + 1 + (cut * (ends - sentences - 1)).astype(np.int64)
    return SentenceSpans(sentences, middles, ends, documents, targets, coin < 0.5, keys)
