"""Sentences → one or two segments per instance, with a label → `[CLS] a [SEP] b [SEP]`.

The input is a block of encoded documents, laid end to end. Its sentences are first divided into
spans, one for each instance. Where a span ends follows from its first sentence: from the lengths
after it and from what is sampled under its key. The ends are therefore computed for many sentences
at once, and only the step from one span to the next is a loop.

An instance is five numbers, the positions of its segments in the tokens of the block and the label,
so that nothing is copied until whole batches are truncated, packed and padded.
"""

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from data_pipeline.config import SINGLE_SEGMENT_FORMATS
from data_pipeline.errors import InputError
from data_pipeline.randomness import heads, key_of, permute, subkeys, uniform

#: Streams of random numbers, see `randomness`; `masking` has others.
_STREAM_SPAN = 1
_STREAM_FIRST = 2
_STREAM_SECOND = 3
_STREAM_RANDOM_SEGMENT = 8
#: Sentences whose spans are computed at once; bounds memory, and fits the cache.
_SENTENCES_AT_ONCE = 1 << 14


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


class SentenceSpans(NamedTuple):
    """N spans of sentences; sentences are numbered throughout the block."""

    begins: np.ndarray  # int64 [N], first sentence
    middles: np.ndarray  # int64 [N], first sentence of the second segment, or `ends` without one
    ends: np.ndarray  # int64 [N], the sentence after the last
    documents: np.ndarray  # int64 [N], document of the first sentence
    targets: np.ndarray  # int64 [N], intended number of tokens
    coins: np.ndarray  # bool [N], fair coin that decides the label
    keys: np.ndarray  # uint64 [N], derived from document, copy and first sentence


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
        spans = split_into_spans(block, config, copy, config.max_num_tokens)
        return _single_segments(block, spans)
    longest = config.max_num_tokens
    if config.overflow == "carry":
        longest -= vocabulary.pair_separators - 1
        # With at most half of the tokens each, any two sentences fit into a record.
        block = split_long_sentences(block, vocabulary.starts_word, longest // 2)
    return _pairs(block, split_into_spans(block, config, copy, longest), config, vocabulary)


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


def _pairs(block, spans, config, vocabulary):
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
        splits = _word_starts_near_middles(
            block.ids, vocabulary.starts_word, begins[single], ends[single]
        )
        kept[single] = splits > 0
        middles[single] = np.where(random_second[single], ends[single], splits)

    starts = np.stack([begins, middles], axis=1)
    lengths = np.stack([middles - begins, ends - middles], axis=1)
    starts[random_second, 1], lengths[random_second, 1] = _random_segments(
        block,
        SentenceSpans(*(array[random_second] for array in spans)),
        lengths[random_second, 0],
        config,
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


def _random_segments(block, spans, first_lengths, config):
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
    if config.input_format == "sentence-pair":
        return starts, block.ends[begins] - starts
    wanted = np.maximum(spans.targets - first_lengths, 1)
    ends = np.minimum(np.searchsorted(block.ends, starts + wanted) + 1, after)
    lengths = block.ends[ends - 1] - starts
    if config.overflow == "carry":  # the first segment must not be cut in its place
        lengths = np.minimum(lengths, wanted)
    return starts, lengths


def split_into_spans(block, config, copy, longest):
    """Splits all documents of a DocumentBlock into SentenceSpans, ordered by their first sentence.

    "segment-pair": as many sentences as fit the target, at least two, or if what is beyond the
    target is cut, the first that reach it. "sentence-pair": two sentences each. "full-sentences"
    and "doc-sentences": as many as fit the target, at least one;
    "full-sentences" continues across documents. If the second segment of a span is taken from
    another document, the unused sentences begin the next span.

    Copies of single-segment formats differ by their short sequences. Without short sequences, the
    copies of "doc-sentences" are split identically, and the copies of "full-sentences" almost
    identically: two series of spans that begin at different sentences soon reach the same
    sentence, and are equal from there on.

    Source:
        ALBERT, section 3.1; `create_instances_from_document` in google-research/albert,
        `create_pretraining_data.py`; RoBERTa, section 4.2.
    """
    settings = block, config, subkeys(block.keys, copy), _limits(block, config, copy), longest
    begins, current, num_sentences = [], 0, len(block.begins)
    for first in range(0, num_sentences, _SENTENCES_AT_ONCE):
        end = min(first + _SENTENCES_AT_ONCE, num_sentences)
        possible = _spans_from(np.arange(first, end), *settings)
        following = possible.ends
        if config.label_objective == "nsp":
            following = np.where(possible.coins, possible.middles, possible.ends)
        following = following.tolist()
        while current < end:
            begins.append(current)
            current = following[current - first]
    return _spans_from(np.array(begins, np.int64), *settings)


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


def _spans_from(sentences, block, config, document_keys, limits, longest):
    """Computes the SentenceSpans that begin, or would begin, with the given sentences."""
    documents = np.searchsorted(block.first_sentences, sentences, side="right") - 1
    copy_keys = document_keys[documents]
    keys = subkeys(copy_keys, sentences - block.first_sentences[documents])
    short, length, cut, coin = uniform(keys, _STREAM_SPAN, 4).T
    if config.short_sequences == "document":
        short, length = uniform(subkeys(copy_keys, 0), _STREAM_SPAN, 2).T
    shorter = 2 + (length * (longest - 1)).astype(np.int64)
    targets = np.where(short < config.short_seq_prob, shorter, longest)

    target_ends = block.begins[sentences] + targets
    if config.input_format == "sentence-pair":
        ends = sentences + 2
    elif config.input_format == "segment-pair" and config.overflow == "cut":
        ends = np.searchsorted(block.ends, target_ends) + 1
    else:
        fewest = 2 if config.input_format == "segment-pair" else 1
        fitting = np.searchsorted(block.ends, target_ends, side="right")
        ends = np.maximum(fitting, sentences + fewest)
    ends = np.minimum(ends, limits[documents])
    middles = sentences + 1 + (cut * (ends - sentences - 1)).astype(np.int64)
    return SentenceSpans(sentences, middles, ends, documents, targets, coin < 0.5, keys)


def truncate_pairs(starts, lengths, keys, max_num_tokens):
    """Truncates pairs that are too long, token by token, at a random end of the longer segment.

    The longer segment (B on a tie) loses its first or its last token until both fit. The final
    lengths follow from the initial ones, and the number of tokens removed at the front is the
    number of heads among fair coins, so no loop is needed. A single segment is the longer one of
    its pair.

    Args:
        starts: int64 [N, 2]. First token of A and B.
        lengths: int64 [N, 2]. 0 for the missing B of a single segment.
        keys: uint64 [N].
        max_num_tokens: int, or int64 [N]. Maximum length of A and B together.

    Returns:
        New starts and lengths, int64 [N, 2] each.

    Source:
        `truncate_seq_pair` in google-research/albert, `create_pretraining_data.py`.
    """
    shorter = lengths.min(axis=1)
    # First only the longer one shrinks; if that is not enough both do alternately, B first.
    kept = np.minimum(lengths, np.maximum(shorter, max_num_tokens - shorter)[:, None])
    surplus = np.maximum(kept.sum(axis=1) - max_num_tokens, 0)
    kept = kept - np.stack([surplus // 2, surplus - surplus // 2], axis=1)
    removed = lengths - kept
    streams = _STREAM_FIRST, _STREAM_SECOND
    front = [heads(keys, stream, removed[:, side]) for side, stream in enumerate(streams)]
    return starts + np.stack(front, axis=1), kept


def pack(
    ids,
    starts,
    lengths,
    max_seq_length: int,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int = 0,
    pair_separators: int = 1,
):
    """Lays out `[CLS] a [SEP] b [SEP]`, or `[CLS] a [SEP]`, and padding for N sequences.

    Args:
        ids: int32 [T]. Tokens that contain the segments.
        starts: int64 [N, 2]. First token of A and B.
        lengths: int64 [N, 2]. Tokens of A and B. If B has length 0 the sequence is A alone.
        max_seq_length: S.
        pair_separators: Number of [SEP] between A and B: 1, or 2 as in RoBERTa.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 for a token, 0 for padding) and
        `segment_ids` (0 up to and including the [SEP] before B, then 1; 0 for padding).

    Raises:
        InputError: If a sequence is longer than S.
    """
    starts, lengths = np.asarray(starts, np.int64), np.asarray(lengths, np.int64)
    first_sep = 1 + lengths[:, 0]
    is_pair = lengths[:, 1] > 0
    before_second = first_sep + np.where(is_pair, pair_separators - 1, 0)
    last_sep = before_second + np.where(is_pair, 1 + lengths[:, 1], 0)
    longest = int(last_sep.max(initial=0)) + 1
    if longest > max_seq_length:
        raise InputError(
            "Segments with [CLS] and [SEP] must have at most `max_seq_length` tokens, which is "
            f"{max_seq_length}. Received: {longest}."
        )
    input_ids = np.full((len(starts), max_seq_length), pad_id, np.int32)
    # Copying segment by segment is faster than gathering token by token.
    for row, begin, end in zip(
        input_ids, starts.tolist(), (starts + lengths).tolist(), strict=True
    ):
        middle = 1 + end[0] - begin[0]
        row[1:middle] = ids[begin[0] : end[0]]
        if end[1] > begin[1]:
            second = middle + pair_separators
            row[second : second + end[1] - begin[1]] = ids[begin[1] : end[1]]
    input_ids[:, 0] = cls_id
    rows = np.arange(len(starts))
    for sep in (first_sep, before_second, last_sep):
        input_ids[rows, sep] = sep_id

    positions = np.arange(max_seq_length, dtype=np.int32)
    is_token = positions <= last_sep[:, None].astype(np.int32)
    is_second = positions > before_second[:, None].astype(np.int32)
    return {
        "input_ids": input_ids,
        "input_mask": is_token.astype(np.int32),
        "segment_ids": (is_token & is_second).astype(np.int32),
    }
