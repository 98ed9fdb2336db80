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

CONFIG = PretrainingDataConfig(max_seq_length=16)


def document(number, num_sentences=2):
    """Returns a document of its own whose pieces are all `number`."""
    lengths = np.arange(1, num_sentences + 1, dtype="<u4")
    ids = np.full(int(lengths.sum()), number, "<u2")
    return EncodedDocument(ids, lengths, number.to_bytes(16, "little"))


def write_parts(folder, *parts):
    for number, part in enumerate(parts):
        write_part(folder, number, [document(n) for n in part])
    return len(parts)


def in_order(folder, num_parts, config=CONFIG):
    """Returns the number of each document in the order drawn up."""
    drawn, shards = order_documents(folder, num_parts, config)
    numbers = []
    for key_range in [key_range for blocks in shards for key_range in blocks]:
        keys, rows = drawn.documents(key_range)
        assert (np.diff(keys) > 0).all()
        ids, lengths = gather(folder, rows, vocab_size=1000)
        assert lengths.tolist() == [1, 2] * len(rows)
        numbers += ids[::3].tolist()
    return numbers


def test_the_order_does_not_depend_on_where_documents_lie(tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    first = in_order(tmp_path / "a", write_parts(tmp_path / "a", range(40), range(40, 100)))
    second = in_order(tmp_path / "b", write_parts(tmp_path / "b", range(99, 20, -1), [], range(21)))
    assert first == second != sorted(first) and sorted(first) == list(range(100))


def test_the_order_does_not_depend_on_how_many_files_hold_it(tmp_path, monkeypatch):
    num_parts = write_parts(tmp_path, range(60), range(30))
    whole = in_order(tmp_path, num_parts)
    monkeypatch.setattr(document_order, "_DOCUMENTS_PER_PARTITION", 7)
    assert in_order(tmp_path, num_parts) == whole
    assert len(list(tmp_path.glob("order-*.keys.npy"))) == 16


def test_equal_documents_have_keys_of_their_own():
    digests = np.array([[1, 2], [3, 4], [3, 4], [3, 4], [3, 5]], np.uint64)
    keys = document_keys(digests, seed=0)
    assert len(set(keys.tolist())) == 5
    np.testing.assert_array_equal(document_keys(digests[1:2], 0), keys[1:2])


def test_shards_hold_equally_many_pieces():
    rng_free = np.arange(1, 5001)
    keys = document_keys(np.stack([rng_free, rng_free], 1).astype(np.uint64), seed=3)
    pieces = np.bincount(bins_of(keys), rng_free % 700 + 1, 1 << document_order.BIN_BITS).astype(
        np.int64
    )
    shards = plan_shards(pieces, copies=1, num_shards=8)
    sizes = [pieces[blocks[0].begin : blocks[-1].end].sum() for blocks in shards]
    assert sum(sizes) == pieces.sum()
    assert max(sizes) - min(sizes) <= 2 * 700


def test_blocks_bound_what_is_held_at_a_time(monkeypatch):
    monkeypatch.setattr(document_order, "TOKENS_PER_BLOCK", 100)
    pieces = np.ones(1 << document_order.BIN_BITS, np.int64)
    pieces[1000:] = 0
    (blocks,) = plan_shards(pieces, copies=2, num_shards=1)
    assert [pieces[block.begin : block.end].sum() for block in blocks] == [50] * 20
