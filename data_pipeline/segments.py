"""Sentences → pairs of segments, with their order as the label.

Before it: a shard of documents, encoded and laid end to end. After it: `packing.py`. A pair is five
numbers, the places of its segments in the shard's pieces and the label, so that nothing is copied
until whole batches are packed.
"""

from typing import NamedTuple

import numpy as np

from data_pipeline.randomness import subkeys, uniform

#: Draws per chunk: shorter or not, how short, where A ends, order, other document, place in it.
_DRAWS = 6
_STREAM = 1


class Shard(NamedTuple):
    """Encoded documents laid end to end.

    Attributes:
        ids: int32 [T]. Pieces of all sentences of all documents.
        edges: list of int64 [n + 1] arrays, one per document. Where its n sentences begin, and
            where the last one ends, in `ids`.
        keys: uint64 [D]. Content address of each document.
    """

    ids: np.ndarray
    edges: list
    keys: np.ndarray


class Pairs(NamedTuple):
    """Segments A and B of N instances.

    Attributes:
        starts: int64 [N, 2]. First piece of A and of B in the shard's `ids`.
        lengths: int64 [N, 2]. Pieces of A and of B, not truncated.
        labels: int64 [N]. 0 in order; 1 swapped, or B from elsewhere.
        keys: uint64 [N]. Key for everything drawn for the instance from here on.
        skipped: int. Stretches left out because they hold one sentence.
    """

    starts: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    keys: np.ndarray
    skipped: int


def segment_pairs(shard, number, config, key, starts_word):
    """Cuts a document into pairs of segments.

    Sentences are gathered until they reach the target length, then split between two of them.

    Deviation from google-research/albert: the target is drawn for each stretch, as the paper has
    it ("input sequences shorter than 512 with a probability of 10%"), not once for a document,
    which would cut a tenth of all books into crumbs.

    Args:
        shard: Shard.
        number: int. Which document of it.
        config: PretrainingDataConfig.
        key: np.uint64. Made of seed, copy and document.
        starts_word: bool [V]. Pieces that open a word.

    Returns:
        Pairs of the document.

    Source:
        ALBERT, section 3.1; `create_instances_from_document` in google-research/albert,
        `create_pretraining_data.py`.
    """
    edges = shard.edges[number].tolist()
    num_sentences = len(edges) - 1
    draws = uniform(key, _STREAM, _DRAWS * num_sentences)[0].reshape(num_sentences, _DRAWS).tolist()
    rows, skipped, begin = [], 0, 0
    while begin < num_sentences:
        short, length, cut, order, other, place = draws[begin]
        target = config.max_num_tokens
        if short < config.short_seq_prob:
            target = 2 + int(length * (config.max_num_tokens - 1))
        end = begin + 1
        while end < num_sentences and edges[end] - edges[begin] < target:
            end += 1

        from_elsewhere = config.objective == "nsp" and order < 0.5
        if end - begin == 1:
            split = _word_start_near_middle(shard.ids, starts_word, edges[begin], edges[end])
            if config.single_sentence_policy == "nsp" or config.objective == "nsp":
                middle, from_elsewhere = edges[end], True
            elif config.single_sentence_policy == "split" and split:
                middle = split
            else:
                skipped, begin = skipped + 1, end
                continue
            next_begin = end
        else:
            in_first = 1 + int(cut * (end - begin - 1))
            middle = edges[begin + in_first]
            next_begin = begin + in_first if from_elsewhere else end

        first = (edges[begin], middle - edges[begin])
        second = (middle, edges[end] - middle)
        if from_elsewhere:
            wanted = max(1, target - first[1])
            second = _passage_elsewhere(shard, number, other, place, wanted)
            rows.append((*first, *second, 1))
        elif config.objective == "sop" and order < 0.5:
            rows.append((*second, *first, 1))
        else:
            rows.append((*first, *second, 0))
        begin = next_begin

    table = np.array(rows, np.int64).reshape(-1, 5)
    keys = subkeys(key, np.arange(len(table)))
    return Pairs(table[:, 0:4:2], table[:, 1:4:2], table[:, 4], keys, skipped)


def concatenate(pairs):
    """Joins the Pairs of several documents into one."""
    arrays = [np.concatenate(parts) for parts in list(zip(*pairs, strict=True))[:4]]
    return Pairs(*arrays, skipped=sum(pair.skipped for pair in pairs))


def _word_start_near_middle(ids, starts_word, begin, end):
    """Returns where a sentence is best cut in two, or None if it is a single word."""
    starts = np.flatnonzero(starts_word[ids[begin + 1 : end]]) + begin + 1
    if not starts.size:
        return None
    return int(starts[np.abs(2 * starts - begin - end).argmin()])


def _passage_elsewhere(shard, number, other, place, wanted):
    """Picks some sentences of another document (of the same one only if there is no other)."""
    num_documents = len(shard.edges)
    if num_documents > 1:
        number = (number + 1 + int(other * (num_documents - 1))) % num_documents
    edges = shard.edges[number]
    begin = int(place * (len(edges) - 1))
    end = min(int(np.searchsorted(edges, edges[begin] + wanted)), len(edges) - 1)
    return int(edges[begin]), int(edges[max(end, begin + 1)] - edges[begin])
