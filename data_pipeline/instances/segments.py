"""Sentences → one segment or two per instance, with a label.

Before it: a shard of documents, encoded and laid end to end. Then `stretches.py` tells which
sentences belong together. After it: `packing.py`. An instance is five numbers, the places of its
segments in the shard's pieces and the label, so that nothing is copied until whole batches are
packed.
"""

from typing import NamedTuple

import numpy as np

from data_pipeline.config import SINGLE_SEGMENT_FORMATS
from data_pipeline.errors import InputError
from data_pipeline.instances.stretches import Stretches, cut_long_sentences, cut_stretches
from data_pipeline.randomness import uniform

_STREAM_ELSEWHERE = 8


class Shard(NamedTuple):
    """Encoded documents laid end to end: n sentences of D documents.

    Attributes:
        ids: int32 [T]. Pieces of all sentences; after `prepare` maybe a [SEP] after each document.
        begins: int64 [n]. First piece of each sentence in `ids`.
        ends: int64 [n]. The piece after its last.
        first_sentences: int64 [D + 1]. First sentence of each document, and their number n.
        keys: uint64 [D]. Made of the seed and the content of each document.
    """

    ids: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    first_sentences: np.ndarray
    keys: np.ndarray

    @classmethod
    def of(cls, ids, sentence_lengths, sentences_per_document, keys):
        """Lays out documents whose sentences follow each other without a gap.

        Args:
            ids: int32 [T].
            sentence_lengths: int [n]. Pieces of each sentence, none of them 0.
            sentences_per_document: int [D]. None of them 0.
            keys: uint64 [D].

        Returns:
            Shard.

        Raises:
            InputError: If the numbers do not add up, or one is 0.
        """
        lengths = np.asarray(sentence_lengths, np.int64)
        counts = np.asarray(sentences_per_document, np.int64)
        sizes = int(lengths.sum()), int(counts.sum()), len(counts)
        smallest = min(lengths.min(initial=1), counts.min(initial=1))
        if sizes != (len(ids), len(lengths), len(keys)) or smallest < 1:
            raise InputError(
                "The sentences of a shard should cover its pieces, and its documents its "
                f"sentences, none of them empty. Received: {sizes} in all, for {len(ids)} pieces, "
                f"{len(lengths)} sentences, {len(keys)} keys of documents."
            )
        ends = lengths.cumsum()
        return cls(ids, ends - lengths, ends, np.pad(counts.cumsum(), (1, 0)), keys)


class Pairs(NamedTuple):
    """Segments A and B of N instances.

    Attributes:
        starts: int64 [N, 2]. First piece of A and of B in the shard's `ids`.
        lengths: int64 [N, 2]. Pieces of A and of B, not truncated; 0 if there is no B.
        labels: int64 [N]. 0 in order; 1 swapped, or B from elsewhere.
        keys: uint64 [N]. Key for everything drawn for the instance from here on.
        skipped: int. Stretches left out because they hold one sentence.
    """

    starts: np.ndarray
    lengths: np.ndarray
    labels: np.ndarray
    keys: np.ndarray
    skipped: int


def prepare(shard, config, sep_id):
    """Adds what the input format needs between documents, once for all copies.

    Args:
        shard: Shard.
        config: PretrainingDataConfig.
        sep_id: int.

    Returns:
        Shard: for "full-sentences" with [SEP] after each document, part of no sentence, but of
        every stretch that goes on across it; for other formats the same one.
    """
    if config.input_format != "full-sentences" or not len(shard.keys):
        return shard
    document_ends = shard.ends[shard.first_sentences[1:] - 1]
    seps_before = np.repeat(np.arange(len(shard.keys)), np.diff(shard.first_sentences))
    return shard._replace(
        ids=np.insert(shard.ids, document_ends, sep_id),
        begins=shard.begins + seps_before,
        ends=shard.ends + seps_before,
    )


def cut_instances(shard, config, copy, vocabulary):
    """Cuts all documents of a shard into instances.

    Deviation from google-research/albert, unless `short_sequences` is "document": the target is
    drawn for each stretch, as the paper has it ("input sequences shorter than 512 with a
    probability of 10%"), not once for a document, which would cut a tenth of all books into crumbs.

    Args:
        shard: Shard, after `prepare`.
        config: PretrainingDataConfig.
        copy: int. Each is cut anew.
        vocabulary: MaskingVocabulary.

    Returns:
        Pairs.
    """
    if config.input_format in SINGLE_SEGMENT_FORMATS:
        shard = cut_long_sentences(shard, vocabulary.starts_word, config.max_num_tokens)
        return _single_segments(shard, cut_stretches(shard, config, copy))
    return _pairs(shard, cut_stretches(shard, config, copy), config, vocabulary.starts_word)


def concatenate(pairs):
    """Joins several Pairs into one."""
    arrays = [np.concatenate(parts) for parts in list(zip(*pairs, strict=True))[:4]]
    return Pairs(*arrays, skipped=sum(pair.skipped for pair in pairs))


def _single_segments(shard, stretches):
    starts = shard.begins[stretches.begins]
    lengths = shard.ends[stretches.ends - 1] - starts
    nothing = np.zeros_like(starts)
    return Pairs(
        np.stack([starts, nothing], axis=1),
        np.stack([lengths, nothing], axis=1),
        nothing,
        stretches.keys,
        skipped=0,
    )


def _pairs(shard, stretches, config, starts_word):
    objective, policy = config.label_objective, config.single_sentence_policy
    if objective == "nsp" and config.input_format == "segment-pair":
        policy = "nsp"
    begins = shard.begins[stretches.begins]
    middles = shard.ends[stretches.middles - 1]
    ends = shard.ends[stretches.ends - 1]
    lone = stretches.ends - stretches.begins == 1
    elsewhere = stretches.coins & (objective == "nsp")
    kept = np.ones(len(begins), bool)
    if policy == "nsp":
        elsewhere |= lone
    elif policy == "skip":
        kept = ~lone
    else:
        splits = _word_starts_near_middles(shard.ids, starts_word, begins[lone], ends[lone])
        kept[lone] = splits > 0
        middles[lone] = np.where(elsewhere[lone], ends[lone], splits)

    starts = np.stack([begins, middles], axis=1)
    lengths = np.stack([middles - begins, ends - middles], axis=1)
    starts[elsewhere, 1], lengths[elsewhere, 1] = _passages_elsewhere(
        shard,
        Stretches(*(array[elsewhere] for array in stretches)),
        lengths[elsewhere, 0],
        config.input_format,
    )
    swapped = stretches.coins & ~elsewhere & (objective == "sop")
    starts[swapped], lengths[swapped] = starts[swapped, ::-1], lengths[swapped, ::-1]
    labels = (elsewhere | swapped).astype(np.int64)
    skipped = int((~kept).sum())
    return Pairs(starts[kept], lengths[kept], labels[kept], stretches.keys[kept], skipped)


def _word_starts_near_middles(ids, starts_word, begins, ends):
    """Returns where each of N sentences is best cut in two, or 0 for a single word, int64 [N]."""
    inner_lengths = ends - begins - 1
    inner_before = inner_lengths.cumsum() - inner_lengths
    inner = np.repeat(begins + 1 - inner_before, inner_lengths) + np.arange(inner_lengths.sum())
    far = 2 * len(ids) + 1
    starts = np.concatenate([[-far], inner[starts_word[ids[inner]]], [far]])
    # Word starts of other sentences are further from the middle than any of the sentence's own.
    after = np.searchsorted(2 * starts, begins + ends)
    left, right = starts[after - 1], starts[after]
    nearest = np.where(begins + ends - 2 * left <= 2 * right - begins - ends, left, right)
    return np.where((begins < nearest) & (nearest < ends), nearest, 0)


def _passages_elsewhere(shard, stretches, first_lengths, input_format):
    """Picks sentences of another document (of the same one only if there is no other).

    Returns their starts and lengths, int64 [N] each.
    """
    num_documents = len(shard.keys)
    other, place = uniform(stretches.keys, _STREAM_ELSEWHERE, 2).T
    further = 1 + (other * (num_documents - 1)).astype(np.int64)
    documents = (stretches.documents + further) % max(1, num_documents)
    first, after = shard.first_sentences[documents], shard.first_sentences[documents + 1]
    begins = first + (place * (after - first)).astype(np.int64)
    starts = shard.begins[begins]
    if input_format == "sentence-pair":
        return starts, shard.ends[begins] - starts
    wanted = np.maximum(stretches.targets - first_lengths, 1)
    ends = np.minimum(np.searchsorted(shard.ends, starts + wanted) + 1, after)
    return starts, shard.ends[ends - 1] - starts
