"""Test vectors are from `tokenization_test.py` in google-research/bert, where it has them."""

import random

import numpy as np
import pytest

from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.wordpiece import BasicTokenizer, read_pieces

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PUBLIC = ["want", "##want", "##ed", "wa", "un", "runn", "##ing", ","]
PIECES = [*SPECIAL, "[unused1]", *PUBLIC, *"[]=ab曹操", "##s", "s", "mask", "cls", "##中", "<S>"]


@pytest.fixture
def vocabulary(tmp_path):
    """Writes pieces to a bare file and returns its path."""

    def write(pieces=PIECES, name="vocab.txt"):
        (tmp_path / name).write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def tokenizer(vocabulary):
    return Tokenizer.load(vocabulary())


# Words


@pytest.mark.parametrize(
    "text, words",
    [
        ("ah\u535a\u63a8zz", ["ah", "\u535a", "\u63a8", "zz"]),
        (" \tHeLLo!how  \n Are yoU?  ", ["hello", "!", "how", "are", "you", "?"]),
        ("H\u00e9llo", ["hello"]),
        ("a\0b\ufffdc\u200bd\x07e\ud800f", ["abcdef"]),
        ("a\u00a0b\u3000c\u2028d\re", ["a", "b", "c", "d", "e"]),
        ("a$b^c`d\u3002e", ["a", "$", "b", "^", "c", "`", "d", "\u3002", "e"]),
        ("Straße ﬁ ½", ["straße", "ﬁ", "½"]),
        ("\u0301 a\u0301\u4e2d\u0301b", ["a", "\u4e2d", "b"]),
        ("a\u2260b", ["a", "=", "b"]),
        ("\u039f\u03a3'\u0391 \u039f\u03a3", ["\u03bf\u03c3", "'", "\u03b1", "\u03bf\u03c2"]),
        ("カナ 한", ["カナ", "\u1112\u1161\u11ab"]),
        ("", []),
    ],
)
def test_text_is_split_into_words(text, words):
    assert BasicTokenizer(lower_case=True, strip_accents=True).words(text) == words


# Pieces


def test_public_vectors(tokenizer):
    pieces = ["un", "##want", "##ed", ",", "runn", "##ing"]
    assert tokenizer.pieces("UNwant\u00e9d,running") == pieces
    assert tokenizer.encode("UNwant\u00e9d,running") == [PIECES.index(piece) for piece in pieces]
    assert tokenizer.encode("") == []
    unknown = tokenizer.encode("unwantedx running")
    assert unknown == [1, PIECES.index("runn"), PIECES.index("##ing")]
    assert tokenizer.pieces("unwantedx 吕")[:2] == ["unwantedx", "吕"]


def test_raw_text_never_gives_a_special_piece(tokenizer):
    assert tokenizer.pieces("[MASK]s") == ["[", "mask", "]", "s"]
    rng = random.Random(7)
    words = [
        *SPECIAL,
        "[mask]",
        "［ＭＡＳＫ］",
        "[unused1]",
        "##s",
        "<S>",
        "[MASK\u0301]",
        "a",
        " ",
    ]
    texts = ["".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(10_000)]
    found = {tokenizer.piece_of(id) for id in tokenizer.encode_sentences(texts)[0].tolist()}
    assert found & {*SPECIAL, "[unused1]", "<S>"} == {"[UNK]"}


def test_decoding_puts_words_together(tokenizer):
    ids = [2, *tokenizer.encode("unwanted running, 曹操 want a"), 3, 0]
    assert tokenizer.decode(np.array(ids)) == "unwanted running ,曹操want a"


# Files


def test_lines_are_read_as_in_the_original():
    content = "﻿[PAD]\r\n  want 17\n\n##ed\tx\u3000y\nlast".encode()
    assert read_pieces(content) == ["[PAD]", "want", " ", "##ed", "last"]
