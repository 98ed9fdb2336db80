"""Texts and pairs of texts → `[CLS] a [SEP] b [SEP]` as arrays."""

from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.instances.packing import pack

_MIN_SEQ_LENGTH = 5  # [CLS] a [SEP] b [SEP] with one piece each


class EncodedPairs(NamedTuple):
    """Pairs before they are laid out: what `pack` takes, a fraction of the size of its result.

    Attributes:
        ids: int32 [T]. Pieces of all different texts.
        starts: int64 [N, 2]. First piece of A and B in `ids`.
        lengths: int64 [N, 2]. Pieces of A and B after truncation; 0 for B where there is none.
    """

    ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def pair_features(examples, tokenizer, max_seq_length) -> dict[str, np.ndarray]:
    """Lays out texts and pairs for the encoder.

    A second text that the tokenizer leaves nothing of counts as absent. What is too long loses
    pieces as in `truncated_lengths`.

    Args:
        examples: list of TextExample. N of them.
        tokenizer: Tokenizer.
        max_seq_length: int. S, at least 5.

    Returns:
        dict of int32 [N, S]: `input_ids`, `input_mask` (1 = real) and `segment_ids` (0 up to and
        with the first [SEP], then 1; 0 on padding).

    Raises:
        InputError: If `max_seq_length` leaves no room for a pair.

    Source:
        `convert_single_example` in google-research/albert, `classifier_utils.py`.
    """
    pairs = encode_pairs(examples, tokenizer, max_seq_length)
    return lay_out(pairs, tokenizer, max_seq_length)


def encode_pairs(examples, tokenizer, max_seq_length) -> EncodedPairs:
    """Encodes and truncates without laying out: where padded rows of all examples are too many.

    Arguments and errors as in `pair_features`. `lay_out` makes rows of the result or of a part.
    """
    if max_seq_length < _MIN_SEQ_LENGTH:
        raise InputError(
            f"`max_seq_length` should be at least {_MIN_SEQ_LENGTH}, [CLS], [SEP] and [SEP] with "
            f"a piece of each text. Received: {max_seq_length}."
        )
    texts = [example.first for example in examples]
    texts += [example.second or "" for example in examples]
    ids, starts, lengths = encode_texts(texts, tokenizer)
    lengths = lengths.reshape(2, -1).T
    room = max_seq_length - np.where(lengths[:, 1] > 0, 3, 2)
    return EncodedPairs(ids, starts.reshape(2, -1).T, truncated_lengths(lengths, room))


def lay_out(pairs, tokenizer, max_seq_length) -> dict[str, np.ndarray]:
    """Lays out EncodedPairs; returns as `pair_features`."""
    return pack(
        pairs.ids,
        pairs.starts,
        pairs.lengths,
        max_seq_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
    )


def encode_texts(texts, tokenizer):
    """Encodes many texts, each different one once.

    Args:
        texts: list of str. N of them.
        tokenizer: Tokenizer.

    Returns:
        tuple. int32 [T], the ids of all different texts end to end; int64 [N], where those of a
        text start; int64 [N], how many they are.
    """
    numbers = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    ids, lengths = tokenizer.encode_sentences(list(numbers))
    starts = lengths.cumsum() - lengths
    rows = np.array([numbers[text] for text in texts], np.int64)
    return ids, starts[rows], lengths[rows]


def truncated_lengths(lengths, room) -> np.ndarray:
    """Tells what remains if the longer text, B on a tie, loses pieces until both fit.

    It is the last piece that goes each time, so the beginnings stay.

    Args:
        lengths: int64 [N, 2]. Pieces of A and B.
        room: int or int64 [N]. Pieces for both together.

    Returns:
        int64 [N, 2].

    Source:
        `_truncate_seq_pair` in google-research/albert, `classifier_utils.py`.
    """
    first, second = lengths.T
    second = np.minimum(second, np.maximum(room // 2, room - first))
    return np.stack([np.minimum(first, room - second), second], axis=1)
