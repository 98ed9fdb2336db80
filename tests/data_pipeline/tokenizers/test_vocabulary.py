import hashlib
import json
import string

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
        "vocab_size": 307,
        "sha256": tiny_vocabulary.sha256,
        "version": 1,
    }
    lines = (folder / "tokenizer.vocab").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines[:13]] == SPECIAL
    assert len(lines) == tiny_vocabulary.size == 307


def test_special_pieces_have_the_types_of_the_official_vocabulary(tiny_vocabulary):
    model = read_model((tiny_vocabulary.path / "tokenizer.model").read_bytes())
    control, unknown, user_defined = 3, 2, 4
    types = [piece.type for piece in model.pieces[:13]]
    assert types == [control, unknown, control, control, control] + 8 * [user_defined]


def test_the_same_texts_give_the_same_bytes(tiny_vocabulary, tiny_corpus, tmp_path):
    again = train_vocabulary(iter(tiny_corpus), tmp_path / "again", size=307)
    assert again.sha256 == tiny_vocabulary.sha256


def test_the_model_names_no_path_of_the_machine_that_trained_it(tiny_vocabulary):
    spec = read_model((tiny_vocabulary.path / "tokenizer.model").read_bytes()).normalizer_spec
    assert spec.name == "user_defined"
    assert not spec.normalization_rule_tsv


def test_case_and_accents_are_kept_if_asked_for(tmp_path):
    corpus = ["Der Bäcker über der Straße", "Größe zählt, und Übung auch"] * 5
    train_vocabulary(
        corpus, tmp_path / "de", 200, lower_case=False, strip_accents=False, hard_limit=False
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


PRINTABLE = string.digits + string.ascii_letters + string.punctuation


def unknown(tokenizer, characters):
    """Returns the characters that have no piece, alone or inside a word."""
    return [c for c in characters if tokenizer.unk_id in tokenizer.encode(f"{c} the{c}the")]


def test_printable_ascii_is_never_unknown(tiny_tokenizer):
    assert unknown(tiny_tokenizer, PRINTABLE) == []


def test_capital_letters_have_pieces_only_without_lower_casing(
    tiny_corpus, tiny_tokenizer, tmp_path
):
    assert not set(tiny_tokenizer.model.vocabulary) & set(string.ascii_uppercase)
    trained = train_vocabulary(tiny_corpus, tmp_path / "cased", 280, lower_case=False)
    tokenizer = Tokenizer.load(trained.path)
    assert unknown(tokenizer, PRINTABLE) == []
    assert set(tokenizer.model.vocabulary) >= set(PRINTABLE)


def test_required_characters_are_cleaned_up_like_text(tiny_corpus, tiny_tokenizer, tmp_path):
    wanted = "§µÖ龘Ａ€ é\u0308"
    assert unknown(tiny_tokenizer, "§µ龘") == list("§µ龘")
    trained = train_vocabulary(tiny_corpus, tmp_path / "out", 280, required_characters=wanted)
    tokenizer = Tokenizer.load(trained.path)
    assert trained.size == 280 and unknown(tokenizer, wanted) == []
    assert set("§μ龘") < set(tokenizer.model.vocabulary)  # U+03BC, and not the micro sign
    assert not set("µÖＡé\u0308 ") & set(tokenizer.model.vocabulary)
    assert tokenizer.model.vocabulary[:13] == SPECIAL
    assert tokenizer.model.vocabulary.count("€") == 1


def test_required_characters_do_not_make_special_pieces_of_text(tiny_corpus, tmp_path):
    trained = train_vocabulary(tiny_corpus, tmp_path / "out", 280, required_characters="[MASK]")
    tokenizer = Tokenizer.load(trained.path)
    assert not {*range(5)} & {*tokenizer.encode("[MASK] [CLS] <pad> <unk>")}


@pytest.mark.parametrize("character", ["▅", "\0", "\udcff"], ids=ascii)
def test_a_required_character_that_is_not_text_is_refused(character, tmp_path):
    with pytest.raises(InputError, match="`required_characters` must not contain"):
        train_vocabulary(["words"], tmp_path / "out", required_characters=f"a{character}")
    assert not list(tmp_path.iterdir())


def test_a_size_below_the_required_characters_is_refused(tiny_corpus, tmp_path):
    pattern = r"at least (\d+) .*: 13 special pieces and \d+ characters; 65 .*Received: 70"
    with pytest.raises(InputError, match=pattern) as error:
        train_vocabulary(tiny_corpus, tmp_path / "out", 70, required_characters="§°")
    least = int(str(error.value).split("at least ")[1].split()[0])
    trained = train_vocabulary(tiny_corpus, tmp_path / "out", least, required_characters="§°")
    assert trained.size == least


def test_coverage_counts_the_characters_of_the_clean_text(tmp_path):
    # One character in 10,000 is rare, and the last text has five that occur once.
    corpus = ["(.)", *["Ab cd\u0301 " * 2500 + "龘"] * 2, "㍍ 鱻"]
    out = tmp_path / "out"
    coverage = train_vocabulary(corpus, out, 90, hard_limit=False).coverage
    assert coverage.characters == 3 + 2 * 10_001 + len("メートル鱻")
    assert sum(coverage.uncovered.values()) == 1 and set(coverage.uncovered) < set("メートル鱻")
    assert coverage.fraction == pytest.approx(1 - 1 / coverage.characters)
    assert unknown(Tokenizer.load(out), "龘メートル鱻") == list(coverage.uncovered)


def test_the_most_frequent_uncovered_characters_come_first(tmp_path):
    corpus = ["ab cd " * 1000 + "龘 鱻 鱻 麤 麤 麤"]
    options = {"size": 90, "hard_limit": False, "character_coverage": 0.99}
    coverage = train_vocabulary(corpus, tmp_path / "some", **options).coverage
    assert list(coverage.uncovered.items()) == [("麤", 3), ("鱻", 2), ("龘", 1)]
    assert coverage.characters == 4006 and coverage.fraction == pytest.approx(4000 / 4006)
    options["required_characters"] = "".join(coverage.uncovered)
    coverage = train_vocabulary(corpus, tmp_path / "all", **options).coverage
    assert coverage.uncovered == {} and coverage.fraction == 1


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
