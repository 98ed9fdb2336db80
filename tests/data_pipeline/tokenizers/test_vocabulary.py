import hashlib
import json

import pytest

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import read_model, train_vocabulary

NAMES = ["tokenizer.model", "tokenizer.vocab", "tokenizer_config.json"]
SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *'()"-.–£€']


def test_the_folder_holds_model_pieces_and_configuration(tiny_vocabulary):
    folder = tiny_vocabulary.path
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    model = (folder / "tokenizer.model").read_bytes()
    assert hashlib.sha256(model).hexdigest() == tiny_vocabulary.sha256
    assert json.loads((folder / "tokenizer_config.json").read_text()) == {
        "cleanup": "model",
        "lower_case": True,
        "strip_accents": True,
        "compat_py3": False,
        "vocab_size": 280,
        "sha256": tiny_vocabulary.sha256,
        "version": 1,
    }
    lines = (folder / "tokenizer.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines[:13]] == SPECIAL
    assert len(lines) == tiny_vocabulary.size == 280


def test_special_pieces_have_the_types_of_the_official_vocabulary(tiny_vocabulary):
    model = read_model((tiny_vocabulary.path / "tokenizer.model").read_bytes())
    control, unknown, user_defined = 3, 2, 4
    types = [piece.type for piece in model.pieces[:13]]
    assert types == [control, unknown, control, control, control] + 8 * [user_defined]


def test_the_same_texts_give_the_same_bytes(tiny_vocabulary, tiny_corpus, tmp_path):
    again = train_vocabulary(iter(tiny_corpus), tmp_path / "again", size=280)
    assert again.sha256 == tiny_vocabulary.sha256


def test_the_model_names_no_path_of_the_machine_that_trained_it(tiny_vocabulary):
    spec = read_model((tiny_vocabulary.path / "tokenizer.model").read_bytes()).normalizer_spec
    assert spec.name == "user_defined"
    assert not spec.normalization_rule_tsv


def test_case_and_accents_are_kept_if_asked_for(tmp_path):
    corpus = ["Der Bäcker über der Straße", "Größe zählt, und Übung auch"] * 5
    train_vocabulary(
        corpus, tmp_path / "de", 60, lower_case=False, strip_accents=False, hard_limit=False
    )
    tokenizer = Tokenizer.load(tmp_path / "de")
    assert tokenizer.decode(tokenizer.encode("Bäcker über U\u0308bung")) == "Bäcker über Übung"


def test_a_size_the_corpus_does_not_allow_is_refused_with_the_one_it_does(tiny_corpus, tmp_path):
    with pytest.raises(InputError, match=r"`size` must be at most (\d+) .*Received: 9000") as error:
        train_vocabulary(tiny_corpus, tmp_path / "out", size=9000)
    limit = int(str(error.value).split("at most ")[1].split()[0])
    assert train_vocabulary(tiny_corpus, tmp_path / "out", size=limit).size == limit


def test_without_hard_limit_the_vocabulary_is_as_large_as_can_be(tiny_corpus, tmp_path):
    trained = train_vocabulary(tiny_corpus, tmp_path / "out", size=9000, hard_limit=False)
    assert 280 < trained.size < 9000


def test_a_size_below_the_alphabet_is_refused(tiny_corpus, tmp_path):
    with pytest.raises(InputError, match=r"`size` must be at least \d+ .*Received: 20"):
        train_vocabulary(tiny_corpus, tmp_path / "out", size=20)


@pytest.mark.parametrize("corpus", [[], ["", " \n"], ["\x01"], ["(.)", "-"]], ids=ascii)
def test_a_corpus_without_words_is_refused(corpus, tmp_path):
    with pytest.raises(InputError, match="corpus contains no words"):
        train_vocabulary(corpus, tmp_path / "out", size=50)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_empty_is_left_alone(tiny_corpus, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(InputError, match="not empty"):
        train_vocabulary(tiny_corpus, tmp_path, size=280)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_that_cannot_be_made_is_refused_before_the_corpus_is_read(tmp_path):
    def corpus():
        raise AssertionError("read")
        yield

    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        train_vocabulary(corpus(), tmp_path / "file" / "out", size=280)


@pytest.mark.parametrize("error", [InputError("line 3 is damaged"), KeyboardInterrupt()])
def test_an_error_of_the_corpus_comes_through_and_leaves_nothing(error, tiny_corpus, tmp_path):
    def corpus():
        yield from tiny_corpus
        raise error

    with pytest.raises(type(error)) as raised:
        train_vocabulary(corpus(), tmp_path / "out", size=280)
    assert raised.value is error
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fails_leaves_nothing(tiny_corpus, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("data_pipeline.tokenizers.vocabulary.write_tokenizer_files", full)
    with pytest.raises(InputError, match="No space left"):
        train_vocabulary(tiny_corpus, tmp_path / "out", size=280)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "zebra quilt " * 1000,  # longer than SentencePiece takes
        "字" * 3000 + "zq",  # and without a space
        "zebra ▅ quilt",  # with SentencePiece's own sign for unknown
        "zebra\0quilt",
        "zebra \ud800 quilt",
    ],
    ids=["long", "endless", "reserved", "NUL", "surrogate"],
)
def test_no_text_is_skipped_in_silence(text, tmp_path):
    corpus = [text, *["hello world"] * 5]
    trained = train_vocabulary(
        corpus, tmp_path / "out", size=100, character_coverage=1.0, hard_limit=False
    )
    tokenizer = Tokenizer.load(trained.path)
    assert tokenizer.unk_id not in tokenizer.encode("zq")


def test_training_is_quiet(tiny_corpus, tmp_path, capfd):
    train_vocabulary(tiny_corpus, tmp_path / "out", size=280)
    assert capfd.readouterr() == ("", "")
