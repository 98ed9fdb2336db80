"""Which pieces start a word, decided by their characters."""

import unicodedata

#: SentencePiece's sign for a space.
SPACE = "▁"

#: WordPiece's sign for a piece that continues a word.
CONTINUATION = "##"

#: The marks that are words of their own in google-research/albert, `create_pretraining_data.py`.
#: Apostrophe, <, = and > are not among them: like digits, they make any piece a start.
_REFERENCE_MARKS = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')
_CJK = ("CJK ", "HIRAGANA ", "KATAKANA", "IDEOGRAPHIC ", "HALFWIDTH KATAKANA")


def _starts_word(piece):
    if piece.startswith(SPACE):
        return True
    categories = {unicodedata.category(character)[0] for character in piece}
    return (
        categories <= {"P", "S"}
        or "N" in categories
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


#: Rule -> function that takes a SentencePiece piece and returns whether it starts a word.
RULES = {"unicode": _starts_word, "reference": _starts_word_in_reference}
