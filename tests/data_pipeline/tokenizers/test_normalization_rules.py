import unicodedata

import pytest
import sentencepiece

from data_pipeline.tokenizers.cleanup import clean_up
from data_pipeline.tokenizers.normalization_rules import normalization_rules, rules_tsv

LANGUAGES = {
    "English": 'The café’s “naïve” owner paid £5… "Yes," he said. ½ ﬁsh ＡＢＣ',
    "German": "Straße, Größe und ÄÖÜ: die Übergänge",
    "French": "L’Été À GARÇON œuvre Ÿ",
    "Czech": "Příliš žluťoučký kůň úpěl ďábelské ódy",
    "Vietnamese": "Tiếng Việt ĐẠI HỌC",
    "Turkish": "İstanbul ve Iğdır",
    "Russian": "Съешь ещё этих мягких французских булок, да ВЫПЕЙ ЧАЮ й",
    "Greek": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "Hebrew": "דג סקרן שט בים מאוכזב שָׁלוֹם",
    "Hindi": "हिन्दी में लिखा हुआ वाक्य क़",
    "Bengali": "কো আমার সোনার বাংলা",
    "Chinese": "我能吞下玻璃而不伤身体。豈",
    "Japanese": "いろはにほへと ガギグ ｶﾞｷﾞｸﾞ ㍿",
    "Korean": "키스의 고유조건은 ㅎㅏㄴ",
}
SETTINGS = [(True, True), (True, False), (False, False)]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def settings(request):
    return request.param


@pytest.fixture(scope="module")
def rules(settings):
    return normalization_rules(*settings)


@pytest.fixture(scope="module")
def nmt_nfkc():
    return sentencepiece.SentencePieceNormalizer(
        rule_name="nmt_nfkc",
        add_dummy_prefix=True,
        escape_whitespaces=True,
        remove_extra_whitespaces=True,
    )


@pytest.fixture(scope="module")
def ours(rules, tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rules.tsv"
    path.write_text(rules_tsv(rules), encoding="utf-8")
    return sentencepiece.SentencePieceNormalizer(
        rule_tsv=str(path),
        add_dummy_prefix=True,
        escape_whitespaces=True,
        remove_extra_whitespaces=True,
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_rules_equal_cleanup_followed_by_nmt_nfkc(language, settings, ours, nmt_nfkc):
    text = f"  {LANGUAGES[language]}\t\u3000 x \n"
    assert ours.normalize(text) == nmt_nfkc.normalize(clean_up(text, *settings))


@pytest.mark.parametrize("form", ["NFD", "NFKD", "NFC"])
def test_rules_do_not_care_how_accents_and_syllables_are_written(form, settings, ours):
    for text in LANGUAGES.values():
        assert ours.normalize(unicodedata.normalize(form, text)) == ours.normalize(
            unicodedata.normalize("NFKC", text)
        )
