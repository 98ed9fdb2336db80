"""The order of all documents of a corpus, computed from their digests within bounded memory.

The key of a document determines its position: the mixed bits of its digest, the seed, and the
number of equal documents before it. The order therefore does not depend on where a document was
found, or by which process. Shards are ranges of keys with equally many tokens, to within a
document.
"""

from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.encoding import DOCUMENT, read_documents
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.files import whole_file
from data_pipeline.randomness import key_of, subkeys

#: Ranges of keys are given in bins, by the leading bits of the key.
BIN_BITS = 20
_NUM_BINS = 1 << BIN_BITS
#: Tokens, counting copies, that are split and shuffled at a time; also the size of a shard of about
#: 100 MB if the number of shards is not given.
TOKENS_PER_BLOCK = 16_000_000
#: A small corpus has up to this many shards of this size, so that several processes have work.
_SMALL_SHARDS = 8
_TOKENS_PER_SMALL_SHARD = 1_000_000
_DOCUMENTS_PER_PARTITION = 1 << 20

#: A document in the order: its key, its part, and its row there without the digest.
ORDERED = np.dtype(
    [("key", "<u8"), ("part", "<u4"), *((name, DOCUMENT[name]) for name in DOCUMENT.names[1:])]
)


class KeyRange(NamedTuple):
    """A range of keys: the first bin, and the bin after the last."""

    begin: int
    end: int


class DocumentOrder(NamedTuple):
    """The order of the documents of a build, stored in files of a folder."""

    folder: Path
    num_partitions: int

    def documents(self, key_range: KeyRange) -> np.ndarray:
        """Returns the documents of a range, ORDERED [D], by ascending keys."""
        found = []
        for partition in range(self.num_partitions):
            rows = np.load(_path(self.folder, partition), mmap_mode="r")
            first, after = (edge << (64 - BIN_BITS) for edge in key_range)
            begin, end = bisect_left(rows["key"], first), bisect_right(rows["key"], after - 1)
            found.append(rows[begin:end])
        rows = np.concatenate(found)
        return rows[rows["key"].argsort(kind="stable")]


def _path(folder, partition):
    return folder / f"order-{partition:04d}.npy"


def document_keys(digests, seed):
    """Derives keys, uint64 [D], from digests, uint64 [D, 2], equal ones next to each other.

    Equal documents are distinguished by a number.
    """
    same = np.zeros(len(digests), bool)
    same[1:] = (digests[1:] == digests[:-1]).all(axis=1)
    rows = np.arange(len(digests))
    occurrence = rows - np.maximum.accumulate(np.where(same, 0, rows))
    keys = subkeys(subkeys(key_of("document", seed), digests[:, 0]), digests[:, 1])
    return subkeys(keys, occurrence)


def bins_of(keys):
    """Returns the bin of each key, int64."""
    return (keys >> np.uint64(64 - BIN_BITS)).astype(np.int64)


def plan_shards(
    tokens_per_bin: np.ndarray, copies: int, num_shards: int | None = None
) -> list[list[KeyRange]]:
    """Divides the keys into shards with equally many tokens, and these into blocks.

    No shard and no block is empty; there are fewer shards than requested if there are not enough
    documents. Without a number, it is chosen by the number of tokens.
    """
    cumulative = np.cumsum(tokens_per_bin)
    total = int(cumulative[-1])
    num_shards = num_shards or max(
        -(-total * copies // TOKENS_PER_BLOCK),
        min(_SMALL_SHARDS, -(-total * copies // _TOKENS_PER_SMALL_SHARD)),
    )
    filled = np.flatnonzero(tokens_per_bin)
    shard = (cumulative[filled] - 1) * num_shards // total
    shards = []
    for number in np.unique(shard):
        bins = filled[shard == number]
        before = cumulative[bins] - tokens_per_bin[bins]
        block = (before - before[0]) * copies // TOKENS_PER_BLOCK
        firsts = bins[np.flatnonzero(np.diff(block, prepend=-1))].tolist()
        edges = [*firsts, int(bins[-1]) + 1]
        shards.append([KeyRange(*pair) for pair in zip(edges, edges[1:], strict=False)])
    return shards


def order_documents(folder: Path, num_parts: int, config: PretrainingDataConfig):
    """Computes the order of the documents of all parts in a folder, and stores it there.

    Returns the DocumentOrder and the shards as `plan_shards`, an empty list without documents.
    """
    sizes = [len(read_documents(folder, part)) for part in range(num_parts)]
    if not sum(sizes):
        return DocumentOrder(folder, 0), []
    bits = max(0, (sum(sizes) - 1) // _DOCUMENTS_PER_PARTITION).bit_length()
    tokens_per_bin = np.zeros(_NUM_BINS, np.int64)
    for partition in range(1 << bits):
        rows = _documents_of(folder, num_parts, partition, bits, config.seed)
        with whole_file(_path(folder, partition)) as path, open(path, "wb") as file:
            np.save(file, rows)
        tokens = np.bincount(bins_of(rows["key"]), rows["num_pieces"], _NUM_BINS)
        tokens_per_bin += tokens.astype(np.int64)
    shards = plan_shards(tokens_per_bin, config.copies, config.num_shards)
    return DocumentOrder(folder, 1 << bits), shards


def _documents_of(folder, num_parts, partition, bits, seed):
    """Returns the documents whose digest begins with the bits of a partition, ORDERED [D].

    Equal documents are in the same partition, so that they can be numbered there.
    """
    parts = []
    for part in range(num_parts):
        rows = read_documents(folder, part)
        if bits:
            rows = rows[rows["digest"][:, 0] >> np.uint64(64 - bits) == partition]
        parts.append((rows, np.full(len(rows), part)))
    rows, numbers = map(np.concatenate, zip(*parts, strict=True))
    together = np.lexsort((rows["digest"][:, 1], rows["digest"][:, 0]))
    rows = rows[together]
    ordered = np.empty(len(rows), ORDERED)
    ordered["key"], ordered["part"] = document_keys(rows["digest"], seed), numbers[together]
    for name in DOCUMENT.names[1:]:
        ordered[name] = rows[name]
    return ordered[ordered["key"].argsort(kind="stable")]
