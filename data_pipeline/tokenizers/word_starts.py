"""Which pieces open a word: told by what they look like."""

import unicodedata

#: SentencePiece's sign for a space.
SPACE = "▁"

#: WordPiece's sign for a piece that goes on with a word.
CONTINUATION = "##"

#: The marks that are words of their own for google-research/albert, `create_pretraining_data.py`.
#: Apostrophe, <, = and > are not among them: they make any piece a start, as digits do.
_REFERENCE_MARKS = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_CJK = ("CJK ", "HIRAGANA ", "KATAKANA", "IDEOGRAPHIC ", "HALFWIDTH KATAKANA")


def _starts_word(piece):
    if piece.startswith(SPACE):
        return True
    kinds = {unicodedata.category(character)[0] for character in piece}
    return (
        kinds <= {"P", "S"}
        or "N" in kinds
        or "'" in piece
        or "’" in piece
        or any(unicodedata.name(character, "").startswith(_CJK) for character in piece)
    )


def _starts_word_in_reference(piece):
    plain = _REFERENCE_MARKS.union("abcdefghijklmnopqrstuvwxyz")
    return (
        piece.startswith((SPACE, "<"))
        or piece in _REFERENCE_MARKS
        or not plain.issuperset(piece.lower())
    )


#: Rule -> function of a SentencePiece piece that tells whether it opens a word.
RULES = {"unicode": _starts_word, "reference": _starts_word_in_reference}
