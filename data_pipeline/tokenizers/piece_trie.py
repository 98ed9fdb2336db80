"""Pieces of a vocabulary as a trie in flat arrays, for compiled code to walk byte by byte.

The arrays are a double array: J. Aoe, An efficient digital search algorithm by using a double-array
structure, 1989.
"""

import numpy as np

from data_pipeline.compiled import compiled

_FREE = np.uint32(2**32 - 1)
_MAX_FAILURES = 20


def lay_out_trie(known):
    """Lays pieces out for `_cut`.

    Args:
        known: dict of bytes to (int, float). Pieces, their ids and scores.

    Returns:
        uint32 array [S, 2], float64 array [S], int32 array [S]. Every beginning of a piece has a
        slot, the empty one slot 0. The next byte leads to slot `base + byte`, if that names the
        slot it is reached from. For each slot: base and that slot; score, -inf where no piece
        ends; id.
    """
    beginnings = {piece[:end] for piece in known for end in range(len(piece) + 1)}
    beginnings = sorted(beginnings, key=lambda text: (len(text), text))
    places = {text: place for place, text in enumerate(beginnings)}
    parents = np.array([places[text[:-1]] for text in beginnings])
    slots, slot_of = _lay_out(parents, np.array([0, *(text[-1] for text in beginnings[1:])]))
    ends = slot_of[[places[piece] for piece in known]]
    scores, ids = np.full(len(slots), -np.inf), np.zeros(len(slots), np.int32)
    ids[ends], scores[ends] = zip(*known.values(), strict=True)
    return slots, scores, ids


@compiled
def _lay_out(parents, labels):
    """Finds slots for the nodes of a trie, which are listed by depth, sisters side by side."""
    slots = np.full((1024, 2), _FREE)
    slot_of = np.zeros(len(parents), np.int64)
    begin, lowest = 1, 1
    while begin < len(parents):
        end = begin
        while end < len(parents) and parents[end] == parents[begin]:
            end += 1
        base, fits = lowest - 1, False
        while not fits:
            base, fits = base + 1, True
            if base + 256 > len(slots):
                slots = np.concatenate((slots, np.full(slots.shape, _FREE)))
            for node in range(begin, end):
                fits = fits and slots[base + labels[node], 1] == _FREE
        if base > lowest + _MAX_FAILURES:
            lowest = base  # giving up the few free slots below keeps the search short
        parent = slot_of[parents[begin]]
        slots[parent, 0] = base
        for node in range(begin, end):
            slot_of[node] = base + labels[node]
            slots[slot_of[node], 0], slots[slot_of[node], 1] = 0, parent
        begin = end
    return slots, slot_of
