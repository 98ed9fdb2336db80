import io
import random

import numpy as np
import pytest
import sentencepiece

from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.unigram import UnigramEncoder, is_supported
from data_pipeline.tokenizers.vocabulary import read_model

NORMAL, USER_DEFINED, UNUSED = 1, 4, 5

ALPHABET = [
    *"aaeeiooust nrhdlm ABT 0123456789 ,,.;!?()\"'-–£€*&_/",
    *"     \t\n\r\x01\x7f\u3000\u00a0\u2009\u200b\u200d\ufeff\u00ad\0▁\u2581\u2585\ufffd",
    *"中文字日本語ひらカ한국어\u1112\u1161\u11ab éÉüß\u0301\u0308\u0323ﬁ…½ﷺİ😀👍🏽",
    *["[MASK]", "[CLS]", "<pad>", "<unk>", "</s>", " the ", " and ", " old ", "12, ", " 1987,"],
]


def _random_texts(count, alphabet=ALPHABET, longest=40, seed=3):
    rng = random.Random(seed)
    return ["".join(rng.choices(alphabet, k=rng.randint(0, longest))) for _ in range(count)]


def _assert_same(tokenizer, texts):
    """Compares with SentencePiece."""
    wanted = tokenizer.encode_batch(texts)
    ids, lengths = tokenizer.encode_sentences(texts)
    np.testing.assert_array_equal(lengths, [len(one) for one in wanted])
    np.testing.assert_array_equal(ids, np.concatenate([*wanted, np.zeros(0, np.int32)]))
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)


def _assert_same_cuts(model, texts):
    """Compares with SentencePiece; returns whether ASCII goes through the table."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    encoder = UnigramEncoder(processor, model)
    wanted = processor.encode(texts, num_threads=1)
    ids, lengths = encoder.encode(texts)
    assert lengths.tolist() == list(map(len, wanted))
    assert ids.tolist() == sum(wanted, [])
    return len(encoder._ascii) == 128


def _changed(tokenizer, change):
    """The tokenizer after `change(model)`."""
    model = read_model(tokenizer.model_bytes)
    change(model)
    return Tokenizer(model.SerializeToString(), tokenizer.config)


def _train(**options):
    model = io.BytesIO()
    defaults = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "vocab_size": 70}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat (or dog) sat on a mat", "12, or 7 old hats"] * 10),
        model_writer=model,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        hard_vocab_limit=False,
        minloglevel=2,
        **defaults | options,
    )
    return model.getvalue()


# The ids are SentencePiece's


def test_random_text_is_encoded_as_by_sentencepiece(tiny_tokenizer):
    assert _assert_same_cuts(tiny_tokenizer.model_bytes, _random_texts(3000))
    ascii = [character for character in ALPHABET if character.isascii()]
    _assert_same(tiny_tokenizer, [*_random_texts(1000), *_random_texts(3000, ascii)])


def test_sentences_are_encoded_as_by_sentencepiece(tiny_tokenizer, tiny_corpus):
    _assert_same(tiny_tokenizer, tiny_corpus)


def test_numbers_are_split_from_their_comma(digit_tokenizer):
    texts = ["", "bx12, 7, a", "", "12,7,x12,", "7,", "a", ""]
    _assert_same(digit_tokenizer, [*texts, *_random_texts(1000)])
    assert digit_tokenizer.encode_sentences(texts)[1].sum() > 20


@pytest.mark.parametrize("folder", ["books-en", "books-de", "books-zh"])
def test_real_text_is_encoded_as_by_sentencepiece(
    folder, shared_data, official_model, tiny_tokenizer
):
    lines = []
    for path in sorted((shared_data / "corpus" / folder).glob("*.txt")):
        lines += path.read_text(encoding="utf-8").splitlines()[::10]
    for tokenizer in (tiny_tokenizer, Tokenizer.load(official_model)):
        _assert_same(tokenizer, lines)


@pytest.mark.parametrize("texts", [[], [""], ["", " ", "   ", "\u200b", "the \u200b old", "\x01"]])
def test_empty_texts_have_no_ids(texts, tiny_tokenizer):
    _assert_same(tiny_tokenizer, texts)


def test_neighbouring_unknown_characters_are_one_piece(tiny_tokenizer):
    texts = ["☃", "☃☃ ☃", "a☃☃☃b☃", "☃☃", "☃" * 1000]
    _assert_same(tiny_tokenizer, texts)
    unknown = tiny_tokenizer.unk_id
    assert tiny_tokenizer.encode_sentences(texts[1:2])[0].tolist().count(unknown) == 2


def test_a_long_text_is_encoded_as_by_sentencepiece(tiny_tokenizer, tiny_corpus):
    _assert_same(tiny_tokenizer, ["a", " ".join(tiny_corpus), "é" + "".join(tiny_corpus)])


def test_the_result_may_be_written_to(tiny_tokenizer):
    ids, _ = tiny_tokenizer.encode_sentences(["the old ferry"])
    ids[0] = 5
    assert tiny_tokenizer.encode_sentences(["the old ferry"])[0][0] != 5


# Near-ties, where rounding decides


def _piece(model, text):
    return next(piece for piece in model.pieces if piece.piece == text)


def test_a_tie_is_cut_differently_in_different_texts(tiny_tokenizer, tiny_corpus):
    def change(model):
        del model.pieces[-4:]
        letters = {piece.piece for piece in model.pieces}
        for text, score in (("▁x", -3.1), ("▁xy", -3.7), ("yz", -3.3), ("z", -2.7), ("y", -9.0)):
            if text in letters:
                _piece(model, text).score = score
            else:
                model.pieces.add(piece=text, score=score)

    tied = _changed(tiny_tokenizer, change)
    texts = ["xyz", *(f"{text} xyz" for text in tiny_corpus)]
    cuts = {tuple(tied.pieces(text)[-2:]) for text in texts}
    assert cuts == {("▁x", "yz"), ("▁xy", "z")}
    _assert_same(tied, texts)


SCORES = {
    "tenths": lambda rng: -rng.choice([0.1, 0.2, 0.3, 0.7, 1.1]),
    "equal": lambda rng: -1.0,
    "large": lambda rng: -1000 * rng.choice([1 / 3, 0.1, 2 / 3]),
    "positive": lambda rng: rng.choice([-1.0, 1.0, 0.1, -0.1]),
}


@pytest.mark.parametrize("kind", SCORES)
def test_many_ties_are_cut_as_by_sentencepiece(kind):
    trained = read_model(_train(user_defined_symbols=["(", "th"]))
    texts = [*_random_texts(200, "abct  he", 300), *_random_texts(200, "abcthe中é▁A( .", 100)]
    for seed in range(8):
        rng = random.Random(seed)
        model = type(trained).FromString(trained.SerializeToString())
        for piece in model.pieces:
            if (piece.type or NORMAL) == NORMAL:
                piece.score = SCORES[kind](rng)
                piece.type = rng.choices([NORMAL, USER_DEFINED, UNUSED], [8, 1, 1])[0]
        new = {"".join(rng.choices("abcthe▁é中A(", k=rng.randint(1, 4))) for _ in range(60)}
        for text in sorted(new - {piece.piece for piece in model.pieces}):
            type_ = rng.choices([NORMAL, USER_DEFINED, UNUSED], [8, 1, 1])[0]
            model.pieces.add(piece=text, score=SCORES[kind](rng), type=type_)
        _assert_same_cuts(model.SerializeToString(), texts)


# Models of other kinds


@pytest.mark.parametrize(
    "options, plain",
    [
        ({}, True),
        ({"normalization_rule_name": "identity"}, True),
        ({"split_by_whitespace": False}, True),
        ({"user_defined_symbols": ["(", " é"]}, True),
        ({"user_defined_symbols": ["the cat", "▁x", "t", " "]}, False),
        ({"add_dummy_prefix": False}, False),
        ({"remove_extra_whitespaces": False}, False),
        ({"treat_whitespace_as_suffix": True}, False),
    ],
    ids=str,
)
def test_a_unigram_model_of_others_is_encoded_as_by_sentencepiece(options, plain):
    model = _train(**options)
    assert is_supported(model)
    assert _assert_same_cuts(model, _random_texts(2000, [*ALPHABET, "the cat", "x"])) == plain


@pytest.mark.parametrize(
    "rule, plain",
    [
        ("61 62\t63", False),
        ("61 62 63\t64", False),
        ("20 63\t64", False),
        ("63\t64 65", False),
        ("63\t20 20", False),
        ("63\t2581", False),
        ("63\te9", False),
        ("63\t20", True),
        ("63\t", True),
        ("61 301\t63", True),
    ],
)
def test_ascii_has_a_table_where_its_characters_are_independent(rule, plain, tmp_path):
    (tmp_path / "rules.tsv").write_text(f"41\t61\n42\t62\n{rule}\n")
    model = _train(normalization_rule_tsv=str(tmp_path / "rules.tsv"))
    texts = _random_texts(1000, ["a", "b", "c", "d", "A", "B", " ", "\u0301", "é", "t"], 20)
    assert _assert_same_cuts(model, texts) == plain


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "bpe"},
        {"model_type": "word"},
        {"model_type": "char"},
        {"model_type": "bpe", "byte_fallback": True, "vocab_size": 330},
        {"byte_fallback": True, "vocab_size": 330},
    ],
    ids=str,
)
def test_another_model_is_left_to_sentencepiece(options, tmp_path):
    (tmp_path / "x.model").write_bytes(_train(**options))
    tokenizer = Tokenizer.load(tmp_path / "x.model")
    assert not is_supported(tokenizer.model_bytes)
    _assert_same(tokenizer, _random_texts(500))
    _assert_same(tokenizer, [])


@pytest.mark.parametrize("score", [1e30, -1e30, float("inf"), float("nan")])
def test_an_absurd_score_is_left_to_sentencepiece(score, tiny_tokenizer):
    model = read_model(tiny_tokenizer.model_bytes)
    model.pieces[-1].score = score
    assert not is_supported(model.SerializeToString())


def test_a_piece_with_a_zero_byte_is_left_to_sentencepiece(tiny_tokenizer):
    model = read_model(tiny_tokenizer.model_bytes)
    model.pieces[-1].piece = "a\0b"
    assert not is_supported(model.SerializeToString())


def test_the_released_vocabulary_is_supported(official_model):
    model = official_model.read_bytes()
    assert is_supported(model)
    assert _assert_same_cuts(model, _random_texts(2000))
