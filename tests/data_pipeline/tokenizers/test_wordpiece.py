"""Test vectors are from `tokenization_test.py` in google-research/bert, where it has them."""

import collections
import random

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_wordpiece
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.wordpiece import BasicTokenizer, read_pieces

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PUBLIC = ["want", "##want", "##ed", "wa", "un", "runn", "##ing", ","]
PIECES = [*SPECIAL, "[unused1]", *PUBLIC, *"[]=ab曹操", "##s", "s", "mask", "cls", "##中", "<S>"]


@pytest.fixture
def tokenizer(tmp_path):
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece in PIECES), encoding="utf-8")
    return Tokenizer.load(tmp_path / "vocab.txt")


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


def test_public_vectors(tokenizer):
    pieces = ["un", "##want", "##ed", ",", "runn", "##ing"]
    assert tokenizer.pieces("UNwant\u00e9d,running") == pieces
    assert tokenizer.encode("UNwant\u00e9d,running") == [PIECES.index(piece) for piece in pieces]
    assert tokenizer.encode("") == []
    unknown = tokenizer.encode("unwantedx running")
    assert unknown == [1, PIECES.index("runn"), PIECES.index("##ing")]
    assert tokenizer.pieces("unwantedx") == ["[UNK]"]


def test_raw_text_never_gives_a_special_piece(tokenizer):
    assert tokenizer.model.basic.words("[MASK]s") == ["[", "mask", "]", "s"]
    rng = random.Random(7)
    words = [*SPECIAL, *"[mask] ［ＭＡＳＫ］ [unused1] ##s <S> [MASK\u0301] a".split(), " "]
    texts = ["".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(3000)]
    found = {tokenizer.piece_of(id) for id in tokenizer.encode_sentences(texts)[0].tolist()}
    assert found & {*SPECIAL, "[unused1]", "<S>"} == {"[UNK]"}


def test_decoding_puts_words_together(tokenizer):
    ids = [2, *tokenizer.encode("unwanted running, 曹操 want a"), 3, 0]
    assert tokenizer.decode(np.array(ids)) == "unwanted running ,曹操want a"


def test_lines_are_read_as_in_the_original():
    content = "﻿[PAD]\r\n  want 17\n\n##ed\tx\u3000y\nlast".encode()
    assert read_pieces(content) == ["[PAD]", "want", " ", "##ed", "last"]


# Training


@pytest.fixture(scope="module")
def vocabulary(tiny_corpus, tmp_path_factory):
    return train_wordpiece(tiny_corpus, tmp_path_factory.mktemp("wordpiece") / "tiny", 400)


def test_the_folder_is_a_wordpiece_tokenizer_of_the_requested_size(vocabulary, tiny_corpus):
    tokenizer = Tokenizer.load(vocabulary.path)
    assert tokenizer.config.kind == "wordpiece"
    assert tokenizer.vocab_size == vocabulary.size == 400
    assert tokenizer.model.special_ids == [0, 1, 2, 3, 4]
    assert vocabulary.coverage.fraction == 1
    # Frequent words are pieces, and nothing in the corpus is unknown.
    assert {"the", "and"} <= set(tokenizer.model.vocabulary)
    counts = collections.Counter(id for text in tiny_corpus for id in tokenizer.encode(text))
    assert tokenizer.unk_id not in counts
    assert counts.total() < 0.5 * sum(map(len, tiny_corpus))


def test_case_and_accents_are_kept_on_request(tmp_path):
    texts = ["Déjà vu! Déjà vécu? Élan."] * 3
    cased = train_wordpiece(texts, tmp_path / "cased", 400, lower_case=False, strip_accents=False)
    tokenizer = Tokenizer.load(cased.path)
    assert tokenizer.pieces("Déjà") == ["Déjà"]
    folded = train_wordpiece(texts, tmp_path / "folded", 400, strip_accents=True)
    folded = Tokenizer.load(folded.path)
    assert folded.pieces("DÉJÀ") == ["deja"]


def test_rare_characters_are_unknown(tmp_path):
    texts = ["a common text of common letters " * 2000, "one ψ"]
    result = train_wordpiece(texts, tmp_path / "rare", 300)
    assert result.coverage.uncovered == {"ψ": 1}
    assert Tokenizer.load(result.path).encode("ψ") == [1]


def test_a_size_below_the_number_of_characters_is_refused(tiny_corpus, tmp_path):
    with pytest.raises(InputError, match=r"`size` must be at least \d+ .* Received: 50. Raise it."):
        train_wordpiece(tiny_corpus, tmp_path / "small", 50)
    assert not list(tmp_path.iterdir())


def test_white_space_beyond_ascii_is_a_piece():
    lines = ["[PAD]", "\u2028", "\u3000", "\u00a0", "a\u2028b", "c 7", "", "\td\r"]
    pieces = read_pieces("\n".join(lines).encode())
    assert pieces == [*lines[:5], "c", " ", "d"]
