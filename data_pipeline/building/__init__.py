"""How a corpus becomes shards, in two passes over the disk and with bounded memory.

    parts of the corpus ─encoding─▶ encoded parts ─document_order─▶ shards

First pass: each part of the corpus is split into sentences and encoded, and the ids are written to
temporary files. Then the order of all documents is computed from their digests alone. Second pass:
each shard collects its documents from the temporary files, splits, packs and masks them, and writes
them as records. Parts and shards are independent of each other, so any process can take any of
them, and repeat it.
"""
