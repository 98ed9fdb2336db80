import hashlib
import json

import pytest

from data_pipeline.errors import InputError
from data_pipeline.text.letters import choose_cleanup
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import ALWAYS_REQUIRED, train_vocabulary

NAMES = ["tokenizer.model", "tokenizer.vocab", "tokenizer_config.json"]
SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", *'()"-.–£€']


def test_the_folder_holds_model_pieces_and_configuration(tiny_vocabulary):
    folder = tiny_vocabulary.path
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    model = (folder / "tokenizer.model").read_bytes()
    assert hashlib.sha256(model).hexdigest() == tiny_vocabulary.sha256
    assert json.loads((folder / "tokenizer_config.json").read_text()) == {
        "kind": "unigram",
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


def test_the_same_texts_give_the_same_bytes(tiny_vocabulary, tiny_corpus, tmp_path):
    again = train_vocabulary(iter(tiny_corpus), tmp_path / "again", size=307)
    assert again.sha256 == tiny_vocabulary.sha256


def unknown(tokenizer, characters):
    """Returns the characters that have no piece, alone or inside a word."""
    return [c for c in characters if tokenizer.unk_id in tokenizer.encode(f"{c} the{c}the")]


def test_printable_ascii_is_never_unknown(tiny_tokenizer):
    assert unknown(tiny_tokenizer, ALWAYS_REQUIRED) == []


def test_the_largest_size_is_told(tiny_corpus, tmp_path):
    with pytest.raises(InputError, match=r"`size` must be at most (\d+) .*Received: 9000") as error:
        train_vocabulary(tiny_corpus, tmp_path / "out", size=9000)
    limit = int(str(error.value).split("at most ")[1].split()[0])
    assert train_vocabulary(tiny_corpus, tmp_path / "out", size=limit).size == limit


def test_coverage_counts_the_characters_of_the_clean_text(tmp_path):
    # One character in 10,000 is rare, and the last text has five that occur once.
    corpus = ["(.)", *["Ab cd\u0301 " * 2500 + "龘"] * 2, "㍍ 鱻"]
    out = tmp_path / "out"
    settings = {"strip_accents": True, "hard_limit": False}
    coverage = train_vocabulary(corpus, out, 90, **settings).coverage
    assert coverage.characters == 3 + 2 * 10_001 + len("メートル鱻")
    assert sum(coverage.uncovered.values()) == 1 and set(coverage.uncovered) < set("メートル鱻")
    assert coverage.fraction == pytest.approx(1 - 1 / coverage.characters)
    assert unknown(Tokenizer.load(out), "龘メートル鱻") == list(coverage.uncovered)


@pytest.mark.parametrize("corpus", [[], ["", " \n", "\x01", "(.)", "-"]], ids=ascii)
def test_a_corpus_without_words_is_refused(corpus, tmp_path):
    with pytest.raises(InputError, match="corpus contains no words"):
        train_vocabulary(corpus, tmp_path / "out", size=50)
    assert not list(tmp_path.iterdir())


ENGLISH = "The old ferryman left the harbour before anybody in the town woke up. "
GERMAN = "Über dem Fluß hörte man früh die Glocken; der Müller öffnete müde die Tür. "
TURKISH = "Kapıyı açtı ve dışarı çıktı; sabah erkendi, ışık azdı. İstanbul uyuyordu. "
HINDI = "वह यहाँ कुर्सी पर बैठा है। यह कु और क अलग हैं। हिन्दी में मात्राएँ महत्वपूर्ण हैं। "


@pytest.mark.parametrize(
    "text, language, chosen",
    [
        (ENGLISH, None, [True, True]),
        (GERMAN, "en", [True, True]),
        (GERMAN, "de", [True, False]),
        (TURKISH, "tr", [False, False]),
        (HINDI, "hi", [True, False]),
    ],
)
def test_the_language_decides_on_case_and_accents(text, language, chosen):
    texts, *found = choose_cleanup([text] * 20 + ["end"], language=language)
    assert found == chosen and list(texts) == [text] * 20 + ["end"]


@pytest.mark.parametrize("text", [GERMAN, TURKISH, HINDI])
def test_letters_with_accents_need_a_language_or_a_setting(text, tmp_path):
    with pytest.raises(InputError, match="The language of the text must be given") as refused:
        train_vocabulary([text] * 20, tmp_path / "out", 100)
    for option in ("--language", "--keep-accents", "--strip-accents"):
        assert option in str(refused.value)
    assert not (tmp_path / "out").exists()
    for strip_accents in (True, False):
        _, *found = choose_cleanup([text], strip_accents=strip_accents)
        assert found == [True, strip_accents]
    with pytest.raises(InputError, match="`language=xx` is unknown"):
        choose_cleanup([text], language="xx")
