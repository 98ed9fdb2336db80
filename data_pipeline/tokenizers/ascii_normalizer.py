"""Normalises ASCII text as a SentencePiece model does, by a table read off the model.

For models only whose characters of ASCII do not depend on each other.
"""

import numpy as np

from data_pipeline.compiled import compiled

_USER_DEFINED = 4  # type of a piece in `sentencepiece_model.proto`

SPACE = np.frombuffer("▁".encode(), np.uint8)
_BLANK, _DELETED = np.uint8(ord(" ")), np.uint8(255)


def ascii_table(processor, pieces, charsmap):
    """Returns what becomes of each character, uint8 [128]; uint8 [0] if it is not that simple."""
    none = np.zeros(0, np.uint8)
    symbols = [piece.piece for piece in pieces if piece.type == _USER_DEFINED]
    if any(len(symbol) > 1 and symbol.isascii() for symbol in symbols) or _joins_ascii(charsmap):
        return none
    if processor.normalize("  a  a  ") != "▁a▁a":  # one space between words and one in front
        return none
    table = np.empty(128, np.uint8)
    for code in range(128):
        # Doubled, so that white space stands out: it alone becomes a single sign.
        received = processor.normalize("a" + 2 * chr(code) + "a")
        doubled = received.removeprefix("▁a").removesuffix("a")
        if doubled == "▁":
            table[code] = _BLANK
        elif not doubled:
            table[code] = _DELETED
        elif len(doubled) == 2 and doubled[0] == doubled[1] < "\x80":
            table[code] = ord(doubled[0])
        else:
            return none
    return table


def _joins_ascii(charsmap):
    """Tells whether two characters of ASCII stand side by side at the start of a rule's source.

    The sources are a trie: four bytes of length, then units of four bytes (`darts.h`). A unit
    holds the label of the step that leads to it, and where its own steps begin.
    """
    if not charsmap:
        return False
    units = np.frombuffer(charsmap, "<u4", int.from_bytes(charsmap[:4], "little") // 4, 4)
    ascii = np.arange(128, dtype=np.uint32)
    places = np.zeros(1, np.uint32)
    for _ in range(2):
        offsets = (units[places] >> 10) << ((units[places] & 0x200) >> 6)
        following = (places ^ offsets)[:, None] ^ ascii
        places = following[units[following] & 0x800000FF == ascii]  # the highest bit: no step
    return len(places) > 0


@compiled
def normalize_ascii(text, table, normal):
    """Writes a text as SentencePiece normalises it; returns how many bytes that takes."""
    normal[: len(SPACE)] = SPACE
    size, after_space = len(SPACE), True
    for byte in text:
        byte = table[byte]
        if byte != _BLANK and byte != _DELETED:
            normal[size] = byte
            size, after_space = size + 1, False
        elif byte == _BLANK and not after_space:
            normal[size : size + len(SPACE)] = SPACE
            size, after_space = size + len(SPACE), True
    return size - len(SPACE) if after_space else size
