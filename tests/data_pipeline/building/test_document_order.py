"""Documents are put in a random order by their digests, and shards are equally long."""

import numpy as np

from data_pipeline.building import document_order
from data_pipeline.building.document_order import (
    bins_of,
    document_keys,
    order_documents,
    plan_shards,
)
from data_pipeline.building.encoding import EncodedDocument, gather, write_part
from data_pipeline.config import PretrainingDataConfig


def in_order(folder, *parts):
    """Writes parts of documents, each of three pieces that are its number; returns their order."""
    folder.mkdir()
    for number, part in enumerate(parts):
        ids, lengths = np.ones(3, "<u2"), np.array([1, 2], "<u4")
        documents = [EncodedDocument(ids * n, lengths, n.to_bytes(16, "little")) for n in part]
        write_part(folder, number, documents)
    drawn, shards = order_documents(folder, len(parts), PretrainingDataConfig())
    numbers = []
    for key_range in [key_range for blocks in shards for key_range in blocks]:
        rows = drawn.documents(key_range)
        assert (np.diff(rows["key"]) > 0).all()
        ids, lengths = gather(folder, rows, vocab_size=1000)
        assert lengths.tolist() == [1, 2] * len(rows)
        numbers += ids[::3].tolist()
    return numbers


def test_the_order_depends_neither_on_places_nor_on_the_files_that_hold_it(tmp_path, monkeypatch):
    first = in_order(tmp_path / "a", range(40), range(40, 100), range(30))
    assert sorted(first) == sorted([*range(100), *range(30)]) != first
    monkeypatch.setattr(document_order, "_DOCUMENTS_PER_PARTITION", 7)
    assert in_order(tmp_path / "b", range(99, 20, -1), [], range(30), range(21)) == first
    assert len(list((tmp_path / "b").glob("order-*.npy"))) == 32


def test_shards_hold_equally_many_pieces_and_blocks_bound_what_is_held(monkeypatch):
    numbers, num_bins = np.arange(1, 5001), 1 << document_order.BIN_BITS
    bins = bins_of(document_keys(np.stack([numbers, numbers], 1).astype(np.uint64), seed=3))
    pieces = np.bincount(bins, numbers % 700 + 1, num_bins).astype(np.int64)
    shards = plan_shards(pieces, copies=1, num_shards=8)
    sizes = [pieces[blocks[0].begin : blocks[-1].end].sum() for blocks in shards]
    assert sum(sizes) == pieces.sum() and max(sizes) - min(sizes) <= 2 * 700
    monkeypatch.setattr(document_order, "TOKENS_PER_BLOCK", 100)
    pieces = (np.arange(num_bins) < 1000).astype(np.int64)
    (blocks,) = plan_shards(pieces, copies=2, num_shards=1)
    assert [pieces[block.begin : block.end].sum() for block in blocks] == [50] * 20
