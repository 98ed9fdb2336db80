"""Compares held-out records of pre-training with the records that were trained on.

The text of a record is recognized by a digest of its token ids before masking, separately for each
segment, so that other masks and the other order of the two segments make no difference. Another
tokenizer, or another division of the documents into segments, does.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.runs.trained_data import RECORDS, Digests, read_digests
from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.randomness import key_of, subkeys
from data_pipeline.records.decoding import read_features
from data_pipeline.records.record_files import RecordFiles

#: Training records whose digests a run keeps: 2 MB, digested in 4 s on 2 CPU cores. With 50 million
#: records, one in 190 is kept, so that 3,000 trained ones among the held-out records are noticed
#: with a probability of 1 - 10^-7, though their number is not known.
KEPT_RECORDS = 1 << 18
#: Records read and digested at a time; neighbours in a file, so that few blocks are read.
_AT_ONCE = 256


def digests_of(records: RecordFiles, limit: int | None = None) -> Digests:
    """Digests the records of a folder, or an evenly spread sample of them.

    `limit` is the largest number of records to digest, at least 512; None digests all. Raises
    InputError if a record is damaged.
    """
    starts = np.arange(0, len(records), _AT_ONCE)
    if limit is not None and len(records) > limit:
        starts = np.linspace(0, len(records) - _AT_ONCE, limit // _AT_ONCE).astype(np.int64)
    groups = (np.arange(start, min(start + _AT_ONCE, len(records))) for start in starts)
    parts = [digest_features(read_features(records, numbers)) for numbers in groups]
    values = np.concatenate(parts)
    return Digests(values, (records.info.fingerprint,), is_sample=len(values) < len(records))


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


def training_digests(
    records: Sequence[RecordFiles], run: str | Path, initial: OpenedModel | None = None
) -> Digests:
    """Returns the digests of all records that a run was or will be trained on.

    They are `records`, the records of all stages; other records that earlier calls used; and the
    records of the run that the initial weights come from.
    """
    folders = [run] if initial is None else [run, initial.place or initial.path]
    known = [part for one in folders if (part := read_digests(one, RECORDS)) is not None]
    for each in records:
        if all(each.info.fingerprint not in part.fingerprints for part in known):
            known.append(digests_of(each, KEPT_RECORDS))
    return Digests.merged(known)
