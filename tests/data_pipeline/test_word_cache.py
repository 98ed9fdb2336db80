import io
import random

import numpy as np
import pytest
import sentencepiece

from data_pipeline import word_cache
from data_pipeline.tokenization import Tokenizer
from data_pipeline.vocabulary import read_model
from data_pipeline.word_cache import WordCache, splits_at_spaces

NORMAL, USER_DEFINED, UNUSED = 1, 4, 5

ALPHABET = [
    *"aaeeiooust nrhdlm ABT 0123456789 ,,.;!?()\"'-–£€*&_/",
    *"     \t\n\u3000\u00a0\u2009\u200b\u200d\ufeff\u00ad\0▁\u2581\u2585\ufffd",
    *"中文字日本語ひらカ한국어\u1112\u1161\u11ab éÉüß\u0301\u0308\u0323ﬁ…½ﷺİ😀👍🏽",
    *["[MASK]", "[CLS]", "<pad>", "<unk>", "</s>", " the ", " and ", " old ", "12, ", " 1987,"],
]


def _random_texts(count, seed=3):
    rng = random.Random(seed)
    return ["".join(rng.choices(ALPHABET, k=rng.randint(0, 40))) for _ in range(count)]


def _assert_same(tokenizer, texts):
    """Compares with SentencePiece, twice: while words are new, and when they are known."""
    wanted = tokenizer.encode_batch(texts)
    for _ in range(2):
        ids, lengths = tokenizer.encode_sentences(texts)
        np.testing.assert_array_equal(lengths, [len(one) for one in wanted])
        np.testing.assert_array_equal(ids, np.concatenate([*wanted, np.zeros(0, np.int32)]))
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int64)


def _by_words(tokenizer, texts):
    """How many texts the cache encodes without SentencePiece."""
    tokenizer.encode_sentences(texts)
    cache = tokenizer._cache
    return sum(cache._by_words(tokenizer._prepare(text)) is not None for text in texts)


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
    texts = _random_texts(5000)
    _assert_same(tiny_tokenizer, texts)
    assert _by_words(tiny_tokenizer, texts) > 100


def test_sentences_are_encoded_as_by_sentencepiece(tiny_tokenizer, tiny_corpus):
    _assert_same(tiny_tokenizer, tiny_corpus)
    assert _by_words(tiny_tokenizer, tiny_corpus) > 0.9 * len(tiny_corpus)


def test_numbers_are_split_from_their_comma(digit_tokenizer):
    texts = ["bx12, 7, a", "12,7,x12,", "7,"]
    _assert_same(digit_tokenizer, [*texts, *_random_texts(1000)])
    assert _by_words(digit_tokenizer, texts) > 0


@pytest.mark.parametrize("options", [{}, {"byte_fallback": True, "vocab_size": 330}])
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_model_of_others_is_encoded_as_by_sentencepiece(kind, options, tmp_path):
    (tmp_path / "x.model").write_bytes(_train(model_type=kind, **options))
    tokenizer = Tokenizer.load(tmp_path / "x.model")
    _assert_same(tokenizer, _random_texts(2000))
    assert _by_words(tokenizer, ["The cat sat on a mat"]) == 1


@pytest.mark.parametrize("folder", ["books-en", "books-de", "books-zh"])
def test_real_text_is_encoded_as_by_sentencepiece(folder, shared_data, official_model):
    tokenizer = Tokenizer.load(official_model)
    for path in sorted((shared_data / "corpus" / folder).glob("*.txt")):
        _assert_same(tokenizer, path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("texts", [[], [""], ["", " ", "   ", "\u200b", "the \u200b old"]])
def test_empty_texts_have_no_ids(texts, tiny_tokenizer):
    _assert_same(tiny_tokenizer, texts)


def test_the_result_may_be_written_to(tiny_tokenizer):
    ids, _ = tiny_tokenizer.encode_sentences(["the old ferry"])
    ids[0] = 5
    assert tiny_tokenizer.encode_sentences(["the old ferry"])[0][0] != 5


# Words that are cut differently in different texts


@pytest.fixture
def tied(tiny_tokenizer):
    """A vocabulary where `xyz` is `x yz` or `xy z`: the scores are the same."""

    def change(model):
        del model.pieces[-4:]
        letters = {piece.piece for piece in model.pieces}
        for text, score in (("▁x", -3.1), ("▁xy", -3.7), ("yz", -3.3), ("z", -2.7), ("y", -9.0)):
            if text in letters:
                next(piece for piece in model.pieces if piece.piece == text).score = score
            else:
                model.pieces.add(piece=text, score=score)

    return _changed(tiny_tokenizer, change)


def test_a_word_cut_differently_in_context_is_left_to_sentencepiece(tied, tiny_corpus):
    texts = ["xyz", *(f"{text} xyz" for text in tiny_corpus)]
    cuts = {tuple(tied.pieces(text)[-2:]) for text in texts}
    assert cuts == {("▁x", "yz"), ("▁xy", "z")}  # so the word alone does not tell
    _assert_same(tied, texts)
    assert _by_words(tied, ["xyz"]) == 0


def test_a_clear_cut_is_not_left_to_sentencepiece(tied):
    tied = _changed(tied, lambda model: setattr(_piece(model, "yz"), "score", -3.0))
    assert _by_words(tied, ["xyz"]) == 1


def test_unknown_and_strange_words_and_long_texts_are_left_to_sentencepiece(tiny_tokenizer):
    longest = "the " * 249 + "the "  # 1000 characters
    texts = ["the ☃☃", "the▁old", "a\0b", "日" * 17, longest + "a"]
    assert [_by_words(tiny_tokenizer, [text]) for text in texts] == [0] * len(texts)
    _assert_same(tiny_tokenizer, texts)
    assert _by_words(tiny_tokenizer, [longest]) == 1


# Memory


def test_words_are_forgotten_when_there_are_too_many(tiny_tokenizer, tiny_corpus, monkeypatch):
    monkeypatch.setattr(word_cache, "MAX_WORDS", 7)
    tokenizer = Tokenizer(tiny_tokenizer.model_bytes, tiny_tokenizer.config)
    _assert_same(tokenizer, tiny_corpus)
    assert 0 < len(tokenizer._cache._words) <= 7
    assert 0 < len(tokenizer._cache._runs) <= 7


def test_a_known_word_is_not_encoded_again(tiny_tokenizer):
    class Counting:
        calls = 0

        def __getattr__(self, name):
            Counting.calls += name == "normalize"
            return getattr(tiny_tokenizer._processor, name)

    cache = WordCache(Counting(), tiny_tokenizer.model_bytes, list)
    cache.encode(["the old ferry", "the old", "ferry the"])
    assert Counting.calls == 3


# Models for which the cache refuses itself


def _piece(model, text):
    return next(piece for piece in model.pieces if piece.piece == text)


def _rename(text):
    return lambda model: setattr(model.pieces[-1], "piece", text)


def _retype(text, type):
    return lambda model: setattr(_piece(model, text), "type", type)


@pytest.mark.parametrize(
    "change",
    [
        _rename("the▁old"),
        _rename("▁▁"),
        _rename("a b"),
        _retype("▁", UNUSED),
        _retype("▁", USER_DEFINED),
        lambda model: setattr(_piece(model, "▁"), "piece", "☃"),
        lambda model: setattr(model.pieces[-1], "score", 0.5),
    ],
)
def test_a_vocabulary_whose_pieces_cross_spaces_is_refused(change, tiny_tokenizer):
    assert splits_at_spaces(tiny_tokenizer.model_bytes)
    changed = _changed(tiny_tokenizer, change)
    assert not splits_at_spaces(changed.model_bytes)
    _assert_same(changed, ["the old ferry", "a b", "the  old"])
    assert not changed._cache._words


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "word"},
        {"model_type": "char"},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False},
        {"treat_whitespace_as_suffix": True},
        {"user_defined_symbols": ["the cat"]},
    ],
)
def test_a_model_trained_otherwise_is_refused(options):
    assert splits_at_spaces(_train())
    assert not splits_at_spaces(_train(**options))


def test_bpe_with_unused_pieces_is_refused():
    model = _train(model_type="bpe")
    assert splits_at_spaces(model)
    parsed = read_model(model)
    parsed.pieces[-1].type = UNUSED
    assert not splits_at_spaces(parsed.SerializeToString())


@pytest.mark.parametrize(
    "rule, fine",
    [("61 20 62\t63", False), ("20 62\t63", False), ("61\t2581", False), ("61 62\t20 63", True)],
)
def test_a_normaliser_whose_rules_touch_spaces_is_refused(rule, fine, tmp_path):
    (tmp_path / "rules.tsv").write_text(f"41\t61\n42\t62\n{rule}\n")
    model = _train(normalization_rule_tsv=str(tmp_path / "rules.tsv"))
    assert splits_at_spaces(model) == fine


def test_the_released_vocabulary_is_accepted(official_model):
    assert splits_at_spaces(official_model.read_bytes())
