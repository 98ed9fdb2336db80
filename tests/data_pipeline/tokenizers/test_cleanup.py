"""The clean-up does what the original does, and its rules inside a model do the same."""

import unicodedata

import pytest
import sentencepiece

from data_pipeline.tokenizers.cleanup import PLAIN_MARKS, clean_up
from data_pipeline.tokenizers.normalization_rules import normalizer_of


@pytest.mark.parametrize(
    "text, stripped, kept",
    [
        ("  Ünïcode\tCafe\u0301\n", "unicode cafe", "ünïcode café"),
        ("ﬁne ½ ™ İstanbul", "fine 1⁄2 tm istanbul", "fine 1⁄2 tm i̇stanbul"),
        ("Straße ＡＢＣ", "straße abc", "straße abc"),
        ("がぎぐ", "かきく", "がぎぐ"),
        ("हिन्दी 한국어", unicodedata.normalize("NFKD", "हिनदी 한국어"), "हिन्दी 한국어"),
        (" \u3000\x1c\n", "", ""),
    ],
)
def test_it_does_what_the_original_does(text, stripped, kept):
    assert clean_up(text) == stripped and clean_up(text, strip_accents=False) == kept
    assert clean_up(" Été  In PARIS", lower_case=False) == "Ete In PARIS"


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


@pytest.mark.parametrize("settings", [(True, True), (False, False)], ids=str)
def test_rules_equal_cleanup_followed_by_nmt_nfkc_however_accents_are_written(settings):
    def normalized(text):
        return " ".join(ours.normalize(text).split())

    ours, _ = normalizer_of(*settings)
    nmt_nfkc = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    for language, sentence in LANGUAGES.items():
        text = f"  {sentence}\t\u3000 x \n"
        cleaned = clean_up(text, *settings).translate(str.maketrans(PLAIN_MARKS))
        expected = " ".join(nmt_nfkc.normalize(cleaned).split())
        assert normalized(text) == expected, language
        for form in ("NFD", "NFKD", "NFC"):
            other = normalized(unicodedata.normalize(form, text))
            assert other == normalized(unicodedata.normalize("NFKC", text)), (language, form)


def test_new_vocabularies_read_typographic_marks_as_plain_ones():
    ours, _ = normalizer_of(True, True)
    plain = ours.normalize("I don't - “no”".translate(str.maketrans(PLAIN_MARKS)))
    assert ours.normalize("I don’t ‐ „no‟") == plain == ours.normalize('I don\'t - "no"')
    assert ours.normalize("a—b – «c»") == ours.normalize("a–b – «c»")
