"""Sentences → one or two segments per instance, with a label.

The input is a block of encoded documents, laid end to end. `sentence_spans.py` decides which
sentences belong together; `packing.py` comes next. An instance is five numbers, the positions of
its segments in the tokens of the block and the label, so that nothing is copied until whole batches
are packed.
"""

from typing import NamedTuple

import numpy as np

from data_pipeline.config import SINGLE_SEGMENT_FORMATS
from data_pipeline.instances.sentence_spans import (
    SentenceSpans,
    split_into_spans,
    split_long_sentences,
)
from data_pipeline.randomness import uniform

_STREAM_RANDOM_SEGMENT = 8


class DocumentBlock(NamedTuple):
    """Encoded documents laid end to end: n sentences of D documents."""

    ids: np.ndarray  # int32 [T], tokens of all sentences, and those that `add_separators` adds
    begins: np.ndarray  # int64 [n], first token of each sentence in `ids`
    ends: np.ndarray  # int64 [n], the token after its last
    first_sentences: np.ndarray  # int64 [D + 1], first sentence of each document, and n
    keys: np.ndarray  # uint64 [D], derived from the seed and the content of each document

    @classmethod
    def of(cls, ids, sentence_lengths, sentences_per_document, keys):
        """Lays out documents whose sentences follow each other without a gap.

        Args:
            ids: int32 [T].
            sentence_lengths: int [n]. Tokens of each sentence, none of them 0.
            sentences_per_document: int [D]. None of them 0.
            keys: uint64 [D].
        """
        lengths = np.asarray(sentence_lengths, np.int64)
        ends = lengths.cumsum()
        first_sentences = np.pad(np.cumsum(sentences_per_document, dtype=np.int64), (1, 0))
        return cls(ids, ends - lengths, ends, first_sentences, keys)


class Pairs(NamedTuple):
    """Segments A and B of N instances."""

    starts: np.ndarray  # int64 [N, 2], first token of A and of B in the block's `ids`
    lengths: np.ndarray  # int64 [N, 2], tokens of A and of B, not truncated; 0 if there is no B
    labels: np.ndarray  # int64 [N]: 0 in order; 1 swapped, or B from another document
    keys: np.ndarray  # uint64 [N], key for all further sampling for the instance
    skipped: int  # number of spans that were skipped because they have only one sentence

    def select(self, rows):
        """Returns the pairs at an index array or slice, without the number of skipped spans."""
        return Pairs(*(array[rows] for array in self[:4]), skipped=0)


def add_separators(block, config, sep_id):
    """Returns the block with the [SEP] between documents that its input format needs.

    For "full-sentences" there is a [SEP] after each document, part of no sentence, but of every
    span that continues across it; for other formats the block is unchanged.
    """
    if config.input_format != "full-sentences" or not len(block.keys):
        return block
    document_ends = block.ends[block.first_sentences[1:] - 1]
    seps_before = np.repeat(np.arange(len(block.keys)), np.diff(block.first_sentences))
    return block._replace(
        ids=np.insert(block.ids, document_ends, sep_id),
        begins=block.begins + seps_before,
        ends=block.ends + seps_before,
    )


def split_into_pairs(block, config, copy, vocabulary):
    """Splits all documents of a block, after `add_separators`, into Pairs; each copy differently.

    Deviation from google-research/albert, unless `short_sequences` is "document": the target is
    sampled for each span, as in the paper ("input sequences shorter than 512 with a probability of
    10%"), not once per document, which would split a tenth of all books into very short sequences.
    """
    if config.input_format in SINGLE_SEGMENT_FORMATS:
        block = split_long_sentences(block, vocabulary.starts_word, config.max_num_tokens)
        return _single_segments(block, split_into_spans(block, config, copy))
    return _pairs(block, split_into_spans(block, config, copy), config, vocabulary.starts_word)


def concatenate(pairs):
    """Joins several Pairs into one."""
    arrays = [np.concatenate(parts) for parts in list(zip(*pairs, strict=True))[:4]]
    return Pairs(*arrays, skipped=sum(pair.skipped for pair in pairs))


def _single_segments(block, spans):
    starts = block.begins[spans.begins]
    lengths = block.ends[spans.ends - 1] - starts
    zeros = np.zeros_like(starts)
    return Pairs(
        np.stack([starts, zeros], axis=1),
        np.stack([lengths, zeros], axis=1),
        zeros,
        spans.keys,
        skipped=0,
    )


def _pairs(block, spans, config, starts_word):
    objective, policy = config.label_objective, config.single_sentence_policy
    if objective == "nsp" and config.input_format == "segment-pair":
        policy = "nsp"
    begins = block.begins[spans.begins]
    middles = block.ends[spans.middles - 1]
    ends = block.ends[spans.ends - 1]
    single = spans.ends - spans.begins == 1
    random_second = spans.coins & (objective == "nsp")
    kept = np.ones(len(begins), bool)
    if policy == "nsp":
        random_second |= single
    elif policy == "skip":
        kept = ~single
    else:
        splits = _word_starts_near_middles(block.ids, starts_word, begins[single], ends[single])
        kept[single] = splits > 0
        middles[single] = np.where(random_second[single], ends[single], splits)

    starts = np.stack([begins, middles], axis=1)
    lengths = np.stack([middles - begins, ends - middles], axis=1)
    starts[random_second, 1], lengths[random_second, 1] = _random_segments(
        block,
        SentenceSpans(*(array[random_second] for array in spans)),
        lengths[random_second, 0],
        config.input_format,
    )
    swapped = spans.coins & ~random_second & (objective == "sop")
    starts[swapped], lengths[swapped] = starts[swapped, ::-1], lengths[swapped, ::-1]
    labels = (random_second | swapped).astype(np.int64)
    pairs = Pairs(starts, lengths, labels, spans.keys, skipped=0).select(kept)
    return pairs._replace(skipped=int((~kept).sum()))


def _word_starts_near_middles(ids, starts_word, begins, ends):
    """Returns the word start nearest to the middle of each of N sentences, int64 [N].

    It is 0 for a sentence of a single word.
    """
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


def _random_segments(block, spans, first_lengths, input_format):
    """Samples sentences of another document (of the same one only if there is no other).

    Returns their starts and lengths, int64 [N] each.
    """
    num_documents = len(block.keys)
    other, sentence = uniform(spans.keys, _STREAM_RANDOM_SEGMENT, 2).T
    distance = 1 + (other * (num_documents - 1)).astype(np.int64)
    documents = (spans.documents + distance) % max(1, num_documents)
    first, after = block.first_sentences[documents], block.first_sentences[documents + 1]
    begins = first + (sentence * (after - first)).astype(np.int64)
    starts = block.begins[begins]
    if input_format == "sentence-pair":
        return starts, block.ends[begins] - starts
    wanted = np.maximum(spans.targets - first_lengths, 1)
    ends = np.minimum(np.searchsorted(block.ends, starts + wanted) + 1, after)
    return starts, block.ends[ends - 1] - starts
