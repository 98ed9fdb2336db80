"""How a corpus becomes shards, in two passes over disk and with bounded memory.

    parts of the corpus ─encoding─▶ spill ─order─▶ shards

First pass: each part of the corpus is split into sentences and encoded, and the pieces are spilled
to disk. Then the order of all documents is drawn up from their digests alone. Second pass: each
shard gathers its documents from the spill, and cuts, packs, masks and writes them. Parts and shards
are independent of each other, so any process may take any of them, again and again.
"""
