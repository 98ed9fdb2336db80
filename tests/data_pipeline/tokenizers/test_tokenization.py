import random

import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.sentencepiece_model import RULES
from data_pipeline.tokenizers.tokenization import Tokenizer

LITERALS = ["[CLS]", "[SEP]", "[MASK]", "<pad>", "<unk>", "<PAD>", "[mask]", "[Cls]"]
LITERALS += ["［ＭＡＳＫ］", "［ＳＥＰ］", "＜ｐａｄ＞", "▁[MASK]", "[MASK\u0301]", "<s>", "</s>"]


@pytest.fixture(scope="module")
def official(official_model):
    return Tokenizer.load(official_model)


# The released vocabulary


def test_ids_of_the_released_vocabulary(official, official_model):
    assert official.encode("This is a test") == [48, 25, 21, 1289]
    assert official.pieces("This is a test") == ["▁this", "▁is", "▁a", "▁test"]
    assert official.vocab_size == 30_000 and official.model.special_ids == [0, 1, 2, 3, 4]
    assert (official.piece_of(14), official.piece_of(29_999)) == ("▁the", "▁eloquent")
    assert official.config.cleanup == "reference"
    np.testing.assert_array_equal(official.ordinary_ids, np.arange(5, 30_000))
    # Years are split from their comma.
    assert len(official.model.digit_comma) == 141
    assert official.pieces("In 1999, we") == ["▁in", "▁1999", ",", "▁we"]
    with_accents = Tokenizer.load(official_model, strip_accents=False)
    text = "I was born in 92000, and this is falsé."
    assert with_accents.encode(text) == [31, 23, 386, 19, 561, 3050, 15, 17, 48, 25, 8256, 18, 1, 9]
    assert with_accents.pieces(text)[-3:] == ["s", "<unk>", "."]


# Encoding


def test_raw_text_never_gives_a_control_symbol(tiny_tokenizer):
    rng = random.Random(7)
    words = [*LITERALS, "the", "(", "old", "\u200b", " ", "▁", ".", "\ud800", "\0"]
    texts = ["".join(rng.choices(words, k=rng.randint(1, 6))) for _ in range(10_000)]
    ids = set(np.concatenate(tiny_tokenizer.encode_batch(texts)).tolist())
    tails = {id for text in texts[:1000] for id in tiny_tokenizer.continuation_ids(text)}
    control = set(tiny_tokenizer.model.special_ids) - {tiny_tokenizer.unk_id}
    assert not (ids | tails) & control
    assert tiny_tokenizer.encode("  THÉ  old\tﬁsh") == tiny_tokenizer.encode("the old fish")


def test_sentences_give_the_ids_of_single_texts_in_one_array(
    tiny_tokenizer, official, digit_tokenizer
):
    texts = ["The old ferry", "", "\ud800 é ferry", "In 1999, we", "bx12, 7,", "☃☃ ☃", "\u200b", ""]
    for tokenizer in (tiny_tokenizer, official, digit_tokenizer):
        ids, lengths = tokenizer.encode_sentences(iter(texts))
        encoded = [tokenizer.encode(text) for text in texts]
        assert ids.tolist() == sum(encoded, [])
        assert lengths.tolist() == [len(one) for one in encoded]
        assert (ids.dtype, lengths.dtype) == (np.int32, np.int64) and ids.flags.writeable
        assert [len(each) for each in tokenizer.encode_sentences([])] == [0, 0]


# Continuations


def test_a_continuation_has_only_the_spaces_that_are_there(tiny_tokenizer):
    tail = [tiny_tokenizer.piece_of(id) for id in tiny_tokenizer.continuation_ids("s and the")]
    assert "".join(tail) == "s▁and▁the"
    for text in (" and the", ". The", "", "(x)", "-key", " ", "é"):
        assert tiny_tokenizer.continuation_ids(text) == tiny_tokenizer.encode("(" + text)[2:]


# Digits and commas


def test_number_and_comma_are_pieces_of_their_own(digit_tokenizer):
    pieces = digit_tokenizer.pieces("bx12, 7, a")
    assert "".join(pieces) == "▁bx12,▁7,▁a"
    assert [piece for piece in pieces if "," in piece] == [",", ","]
    ids = [digit_tokenizer.id_of(piece) for piece in pieces]
    assert digit_tokenizer.encode("bx12, 7, a") == ids
    assert digit_tokenizer.encode_batch(["a", "bx12, 7, a"])[1].tolist() == ids


def test_python_3_left_a_space_before_a_number_inside_a_word(digit_tokenizer):
    config = digit_tokenizer.config.replace(compat_py3=True)
    compat = Tokenizer(digit_tokenizer.model_bytes, config)
    assert "".join(compat.pieces("bx12, 7, a")) == "▁b▁x12,▁7,▁a"
    assert compat.digest != digit_tokenizer.digest


# Starts of words


def test_where_words_start(tiny_tokenizer):
    everywhere = ("▁the", "▁", "(", ",", "3", "'s", "€", "中", "カー")
    kinds = dict.fromkeys(everywhere, (True, True)) | {"ing": (False, False), "!!": (True, False)}
    kinds |= dict.fromkeys(("ä", "ский", "ने", "국어"), (False, True))
    tokenizer = Tokenizer(tiny_tokenizer.model_bytes, tiny_tokenizer.config)
    tokenizer.model.vocabulary[-len(kinds) :] = kinds
    starts = (tokenizer.word_starts(rule)[-len(kinds) :].tolist() for rule in RULES)
    assert dict(zip(kinds, zip(*starts, strict=True), strict=True)) == kinds
    assert tokenizer.word_starts("piece").all()


# Files


def test_a_cleanup_inside_the_model_cannot_be_changed(tiny_vocabulary):
    assert Tokenizer.load(tiny_vocabulary.path, lower_case=True).config.lower_case
    with pytest.raises(InputError, match="`lower_case` is part of this model"):
        Tokenizer.load(tiny_vocabulary.path, lower_case=False)


def test_a_tokenizer_of_bytes_is_the_one_of_the_folder(tiny_vocabulary, tmp_path):
    tokenizer = Tokenizer.load(tiny_vocabulary.path)
    files = tokenizer.files()
    assert Tokenizer.of_bytes(files).digest == tokenizer.digest
    assert files == {path.name: path.read_bytes() for path in tiny_vocabulary.path.iterdir()}
    bare = Tokenizer.of_bytes({"any.model": files["tokenizer.model"]})
    assert bare.digest == tokenizer.digest


def test_files_that_are_no_tokenizer_are_one_error(tiny_vocabulary):
    files = Tokenizer.load(tiny_vocabulary.path).files()
    del files["tokenizer.model"]
    with pytest.raises(InputError, match="`tokenizer.model`.* is missing. Received: here."):
        Tokenizer.of_bytes(files, source="here")
    with pytest.raises(InputError, match="Received the files: none"):
        Tokenizer.of_bytes({})
    files["tokenizer.model"] = b"other"
    with pytest.raises(InputError, match="its sha256 differs"):
        Tokenizer.of_bytes(files)


def test_a_piece_that_is_not_utf8_is_a_damaged_file(tiny_vocabulary, tmp_path):
    content = (tiny_vocabulary.path / "tokenizer.model").read_bytes()
    assert "▁the".encode() in content
    path = tmp_path / "flipped.model"
    path.write_bytes(content.replace("▁the".encode(), b"\xe2\x16\x81the", 1))
    with pytest.raises(InputError, match="file is damaged: piece .* is not UTF-8: b.* Received: "):
        Tokenizer.load(path)
