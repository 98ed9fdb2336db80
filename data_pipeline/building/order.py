"""The order of all documents of a corpus, drawn up from their digests without holding them.

A document's place is its key: the mixed bits of its digest, the seed, and how many equal documents
there were before it. So the order does not depend on where a document was found, or by whom. Shards
are stretches of the keys that hold equally many pieces, to within a document.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.spill import DOCUMENT, read_documents
from data_pipeline.randomness import key_of, subkeys

#: A stretch of keys is told in bins, by the leading bits of the key.
BIN_BITS = 20
_NUM_BINS = 1 << BIN_BITS
#: Pieces, copies counted, that are cut and shuffled at a time; also the size of a shard of about
#: 100 MB when the number of shards is not given.
PIECES_PER_BLOCK = 16_000_000
#: A small corpus has several shards of this size, so that several processes find work.
_PIECES_PER_SMALL_SHARD, _SMALL_SHARDS = 1_000_000, 8
_DOCUMENTS_PER_PARTITION = 1 << 20

PLACED = np.dtype([("part", "<u4"), *((name, DOCUMENT[name]) for name in DOCUMENT.names[1:])])


class Stretch(NamedTuple):
    """Keys from the beginning of one bin up to that of another.

    Attributes:
        begin, end: int. Bins; `end` is not part of it.
    """

    begin: int
    end: int


class Order(NamedTuple):
    """Where the order of a build is stored.

    Attributes:
        folder: Path.
        num_partitions: int. Files that it is stored in.
    """

    folder: Path
    num_partitions: int

    def keys(self, stretch):
        """Returns the keys of a stretch in ascending order, uint64 [D]."""
        parts = [
            self._keys(partition)[slice(*self._places(partition, stretch))]
            for partition in range(self.num_partitions)
        ]
        return np.sort(np.concatenate(parts))

    def documents(self, stretch):
        """Returns keys, uint64 [D] ascending, and places, PLACED [D], of a stretch's documents."""
        keys, placed = [], []
        for partition in range(self.num_partitions):
            begin, end = self._places(partition, stretch)
            keys.append(self._keys(partition)[begin:end])
            path = _path(self.folder, partition, "documents")
            offset = begin * PLACED.itemsize
            placed.append(np.fromfile(path, PLACED, count=end - begin, offset=offset))
        keys = np.concatenate(keys)
        ascending = keys.argsort(kind="stable")
        return keys[ascending], np.concatenate(placed)[ascending]

    def _keys(self, partition):
        return np.load(_path(self.folder, partition, "keys.npy"), mmap_mode="r")

    def _places(self, partition, stretch):
        keys = self._keys(partition)
        return [
            len(keys)
            if bin == _NUM_BINS
            else int(np.searchsorted(keys, np.uint64(bin << (64 - BIN_BITS))))
            for bin in stretch
        ]


def _path(folder, partition, kind):
    return folder / f"order-{partition:04d}.{kind}"


def document_keys(digests, seed):
    """Makes the keys of documents, telling equal ones apart by a number.

    Args:
        digests: uint64 [D, 2], equal ones next to each other.
        seed: int.

    Returns:
        uint64 [D].
    """
    same = np.zeros(len(digests), bool)
    same[1:] = (digests[1:] == digests[:-1]).all(axis=1)
    places = np.arange(len(digests))
    occurrence = places - np.maximum.accumulate(np.where(same, 0, places))
    keys = subkeys(subkeys(key_of("document", seed), digests[:, 0]), digests[:, 1])
    return subkeys(keys, occurrence)


def bins_of(keys):
    """Returns the bin of each key, int64."""
    return (keys >> np.uint64(64 - BIN_BITS)).astype(np.int64)


def lay_out_shards(pieces_per_bin, copies, num_shards=None):
    """Divides the keys among shards of equally many pieces, and these into blocks.

    Args:
        pieces_per_bin: int [2 ** BIN_BITS].
        copies: int. How often each piece is used.
        num_shards: int or None. None decides by the number of pieces.

    Returns:
        list of list of Stretch. No shard and no block is empty; there are fewer shards than asked
        for if there are not enough documents.
    """
    upto = np.cumsum(pieces_per_bin)
    total = int(upto[-1])
    wanted = num_shards or max(
        -(-total * copies // PIECES_PER_BLOCK),
        min(_SMALL_SHARDS, -(-total * copies // _PIECES_PER_SMALL_SHARD)),
    )
    filled = np.flatnonzero(pieces_per_bin)
    shard = (upto[filled] - 1) * wanted // total
    shards = []
    for number in np.unique(shard):
        bins = filled[shard == number]
        before = upto[bins] - pieces_per_bin[bins]
        block = (before - before[0]) * copies // PIECES_PER_BLOCK
        firsts = bins[np.flatnonzero(np.diff(block, prepend=-1))].tolist()
        edges = [*firsts, int(bins[-1]) + 1]
        shards.append([Stretch(*pair) for pair in zip(edges, edges[1:], strict=False)])
    return shards


def draw_up_order(folder, num_parts, config):
    """Puts the documents of all parts in order, on disk.

    Args:
        folder: Path. Where the spill lies, and the order is put.
        num_parts: int.
        config: PretrainingDataConfig.

    Returns:
        tuple. Order, and the shards as of `lay_out_shards`, none if there is no document.
    """
    sizes = [len(read_documents(folder, part)) for part in range(num_parts)]
    if not sum(sizes):
        return Order(folder, 0), []
    bits = max(0, (sum(sizes) - 1) // _DOCUMENTS_PER_PARTITION).bit_length()
    pieces_per_bin = np.zeros(_NUM_BINS, np.int64)
    for partition in range(1 << bits):
        digests, placed = _documents_of(folder, num_parts, partition, bits)
        keys = document_keys(digests, config.seed)
        ascending = keys.argsort(kind="stable")
        keys, placed = keys[ascending], placed[ascending]
        np.save(_path(folder, partition, "keys.npy"), keys)
        placed.tofile(_path(folder, partition, "documents"))
        pieces = np.bincount(bins_of(keys), placed["num_pieces"], _NUM_BINS)
        pieces_per_bin += pieces.astype(np.int64)
    shards = lay_out_shards(pieces_per_bin, config.copies, config.num_shards)
    return Order(folder, 1 << bits), shards


def _documents_of(folder, num_parts, partition, bits):
    """Collects the documents whose digest begins with the bits of a partition, equal ones together.

    Equal documents are in the same partition, so that they can be numbered there.
    """
    digests, placed = [], []
    for part in range(num_parts):
        rows = read_documents(folder, part)
        if bits:
            rows = rows[rows["digest"][:, 0] >> np.uint64(64 - bits) == partition]
        places = np.empty(len(rows), PLACED)
        places["part"] = part
        for name in PLACED.names[1:]:
            places[name] = rows[name]
        digests.append(rows["digest"])
        placed.append(places)
    digests, placed = np.concatenate(digests), np.concatenate(placed)
    together = np.lexsort((digests[:, 1], digests[:, 0]))
    return digests[together], placed[together]
