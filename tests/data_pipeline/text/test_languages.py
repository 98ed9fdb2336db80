"""Languages are detected, or nothing is said."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.languages import detect_encodings, detect_language
from data_pipeline.text.letters import language_fault
from data_pipeline.text.sample import language_of

TEXTS = yaml.safe_load(Path(__file__).with_name("languages.yaml").read_text(encoding="utf-8"))
VIETNAMESE = (  # 34 words
    "Bà ngoại tôi sống một mình trong căn nhà nhỏ bên sông, nơi mỗi sáng bà nấu cháo, tưới rau rồi "
    "ngồi chờ người đưa thư mang tin của các con từ thành phố về cho bà."
)


@pytest.mark.parametrize("language", TEXTS)
def test_languages_are_detected(language):
    assert detect_language(TEXTS[language]) == language


def test_addresses_control_characters_and_few_words_of_others_do_not_hide_a_language():
    assert detect_language(f"\x1b[1m{TEXTS['uk']}\x85\ufffe\ud800") == "uk"
    assert detect_language(f"{TEXTS['ko']} [토론](/wiki/special:talk/this)" * 9) == "ko"
    assert detect_language(TEXTS["en"] + " " + TEXTS["ru"][:9]) == "en"
    assert detect_language(VIETNAMESE) == "vi"


@pytest.mark.parametrize(
    "text",
    [
        "1234 ?!",
        "",
        "天下大势，分久必合。合久必分。",
        TEXTS["uk"].encode().decode("latin-1"),  # encoded twice
        TEXTS["vi"].encode().decode("latin-1"),
        TEXTS["uk"].encode("cp1251").decode("latin-1"),
        f"{TEXTS['uk']}\n{TEXTS['ru']}\n{TEXTS['be']}",
    ],
)
def test_what_is_not_certain_is_not_said(text):
    assert detect_language(text) is None


def test_a_language_without_rules_for_sentences_is_not_advised(tmp_path):
    latin = "Naves sero vesperi redierunt. In ripa mulieres iam horam exspectabant."
    (tmp_path / "x.txt").write_text(latin)
    assert detect_language(latin) == "la" and language_of(tmp_path) is None


@pytest.mark.parametrize(
    "language, encoding",
    [
        *(("uk", "CP1251"), ("ru", "KOI8-U"), ("pl", "CP1250"), ("de", "CP1252"), ("fa", "CP1256")),
        *(("ja", "CP932"), ("zh", "GB18030"), ("tr", "CP1254"), ("he", "CP1255"), ("lt", "CP1257")),
        *(("de", "CP850"), ("de", "MACINTOSH"), ("ru", "MAC-CYRILLIC"), ("ru", "ISO8859-5")),
    ],
)
def test_the_encoding_is_the_one_in_which_the_bytes_are_a_language(tmp_path, language, encoding):
    data = TEXTS[language].encode(encoding, "ignore") * 3
    assert data.decode(encoding) in [data.decode(one) for one in detect_encodings(data)[:2]]
    (tmp_path / "x.txt").write_bytes(data)
    with pytest.raises(InputError, match=f"If the file is in .*{encoding}.*, `iconv -f "):
        list(read_corpus(tmp_path))


def test_few_letters_do_not_show_an_encoding():
    assert detect_encodings("Grüße.".encode("latin-1")) == []
    assert detect_encodings(bytes(range(128, 256)) * 9) == []


def test_the_detector_is_loaded_when_it_is_used():
    program = "import sys, data_pipeline.text.sample; assert 'pycld2' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_only_languages_that_have_rules_are_advised():
    scripts = {"Khmer": 1.0}
    assert language_fault(scripts, "km", "en")[1].endswith("choose another language")
    assert language_fault({"Cyrillic": 1.0}, None, "en")[1].endswith("ru, sr or uk")
    assert language_fault({"Latin": 1.0}, None, "de") == (False, "")
