"""The official vocabulary is known by its pieces, and so is the German one of the same name."""

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats.vocabulary import check_identity, vocabulary_of
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer


def identify(model):
    return vocabulary_of({"a.model": model}, "x").identity


@pytest.fixture(scope="module")
def german(shared_data):
    return identify((shared_data / "vocab/german-30k/30k-clean.model").read_bytes())


def test_three_vocabularies_are_told_apart(official_model, german, tiny_tokenizer):
    official = identify(official_model.read_bytes())
    assert official.name == "official-english" and "official English" in official.sentence
    assert german.name == "german-30k" and "German" in german.sentence
    own = identify(tiny_tokenizer.model_bytes)
    assert own == ("own", "a custom vocabulary of 307 pieces")


def test_ids_are_those_of_the_public_vectors(official_model):
    tokenizer = Tokenizer.load(official_model)
    assert tokenizer.encode("This is a test") == [48, 25, 21, 1289]
    tokenizer = Tokenizer.load(official_model, strip_accents=False)
    wanted = [31, 23, 386, 19, 561, 3050, 15, 17, 48, 25, 8256, 18, 1, 9]
    assert tokenizer.encode("I was born in 92000, and this is falsé.") == wanted


def test_the_german_one_is_refused_beside_released_english_weights(german):
    base = AlbertConfig.from_name("albert-base-v1")
    for name in ("google", "hugging-face"):
        with pytest.raises(InputError, match="shape of albert-base .* --tokenizer"):
            check_identity(german, base, name)
    check_identity(german, base, "albert-keras")
    check_identity(german, base.replace(num_hidden_layers=6), "google")


def test_the_official_one_and_others_are_not_refused(official_model, tiny_tokenizer):
    base = AlbertConfig.from_name("albert-base")
    for model in (official_model.read_bytes(), tiny_tokenizer.model_bytes):
        check_identity(identify(model), base, "google")


def test_what_is_no_model_is_refused():
    with pytest.raises(InputError, match="SentencePiece model"):
        identify(b"no model")
