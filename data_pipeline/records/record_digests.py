"""Digests of records, by which the text of a record is recognized in another folder.

A digest is computed from the token ids before masking and separately for each
segment, so that other masks and the other order of the two segments make no difference. Another
tokenizer, or another division of the documents into segments, does.
"""

import numpy as np

from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.randomness import key_of, subkeys
from data_pipeline.records.decoding import decode_batch
from data_pipeline.records.record_folder import RecordFiles

#: Records read and digested at a time; neighbours in a file, so that few blocks are read.
_AT_ONCE = 256


def digest_records(records: RecordFiles, limit: int | None = None) -> np.ndarray:
    """Digests the records of a folder, or an evenly spread sample of them: uint64 [K].

    Args:
        records: RecordFiles.
        limit: int or None. Largest number of records to digest, at least 512; None digests all.

    Raises:
        InputError: If a record is damaged, see `decode_batch`.
    """
    return np.concatenate([_digest(records, numbers) for numbers in _numbers(len(records), limit)])


def _numbers(count, limit):
    """Yields the numbers of the records to digest, int64 [N], N at most 256."""
    starts = np.arange(0, count, _AT_ONCE)
    if limit is not None and count > limit:
        starts = np.linspace(0, count - _AT_ONCE, limit // _AT_ONCE).astype(np.int64)
    for start in starts:
        yield np.arange(start, min(start + _AT_ONCE, count))


def _digest(records, numbers):
    info = records.info
    return digest_features(
        decode_batch(
            records.read(numbers),
            info,
            info.static_masks,
            lambda row: records.name_of(numbers[row]),
        )
    )


def digest_features(features: dict[str, np.ndarray]) -> np.ndarray:
    """Digests decoded records, uint64 [N]; `features` as `decode_batch` returns them."""
    is_token = features["input_mask"] != 0
    ids = unmask(*(features[name] for name in MASKED_FEATURES))
    is_token[:, 0] = False  # [CLS], which belongs to neither segment
    is_second = features["segment_ids"] != 0
    segments = [_segment(ids, is_token & ~is_second), _segment(ids, is_token & is_second)]
    # A sum, in which the order of the two makes no difference.
    return sum(subkeys(key_of("segment"), segment) for segment in segments)


def _segment(ids, is_member):
    """Digests the tokens of a segment (bool [N, S]) by their positions in it: uint64 [N]."""
    positions = np.arange(ids.shape[1]) - is_member.argmax(axis=1)[:, None]
    hashes = subkeys(subkeys(key_of("digest", "token"), np.maximum(positions, 0)), ids)
    # The digest is the sum of a hash of each token with its position.
    return np.where(is_member, hashes, np.uint64(0)).sum(axis=1, dtype=np.uint64)
