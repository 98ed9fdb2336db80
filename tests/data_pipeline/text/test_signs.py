"""Texts that are something else have signs, which other texts of many languages do not have."""

import pytest

from data_pipeline.text.signs import SignCounter


def found(*texts):
    """Returns the names of the signs of texts, and the texts for people."""
    counter = SignCounter()
    for text in texts:
        counter.add(text)
    return {name: text for _, name, text in counter.findings("texts") if "(0)" not in text}


@pytest.mark.parametrize(
    "name, text",
    [
        *[
            ("markup", text)
            for text in (
                "PageV01P084",
                "### |",
                "~~ وقال المصنف",
                "See <a href='x'>this</a> page.",
                "12.5 | 13.5 | 14.5",
                "1,204 3,442 9,001",
                "Tom &amp; Ann left",
                "it&#39;s late",
                "first line_x000D_ second",
                "\x1b[1mThe\x1b[0m ferry",
                "the [31mferry [0mleft",
                "The [b]ferry[/b] left",
                "The caf\\u00e9 was closed.\\nNobody left",
                "The old%20ferry left",
                "The caf=C3=A9 was closed",
                "- - - - -",
            )
        ],
        ("controls", "The old\x08 ferry"),
        ("controls", "The old\u200bferry"),
        ("controls", "The fer\u00adry"),
        ("controls", "a\x92s the ferry"),
        ("encoding", "Le cafÃ© de la gare"),
        ("encoding", "It isnâ€™t late"),
        ("encoding", "ÐŸÐ°Ñ€Ð¾Ð¼ ÑƒÑˆÑ‘Ð»"),
        ("encoding", "РџР°СЂРѕРј СѓС€С‘Р»"),
        ("encoding", "Ïàðîì óø¸ë"),  # Windows-1251, read as Latin-1
        ("encoding", "the fer\ufffdry left"),
        ("encoding", "the \ue001rst ferry left"),
        ("separators", "It left.<|endoftext|>Nobody knew."),
        ("separators", "It left.</s><s>Nobody knew."),
        ("source code", "def add(self, ferry): return self.count + ferry"),
        ("source code", "for (let i = 0; i < n; i++) { left.push(i); }"),
        ("source code", "SELECT name FROM ferries WHERE id = 3;"),
        ("source code", "x <- c(1, 2, 3) y <- mean(x)"),
    ],
)
def test_signs_are_found(name, text):
    assert name in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "He paid £12 for it (in May), and left; nobody knew why.",
        "The U.S. crude settled at $42.83 a barrel; it was 3 * 4 = 12, or so.",
        "«Voilà\xa0», dit-elle à\xa0Noël. LA QUALITÉ » était là…",
        "Der Spaß“, sagte er, „war groß“. Ä“ und Ö”.",
        "吾輩は猫である。名前はまだ無い。",
        "王 小 明 昨 天 去 了 上 海 市 。",
        "About 20% and 35 %C of it = C3; see D:\\nets, or 5 - 3 - 2.",
        "अपने पोस्ट ऑफिस में 420 पदों पर भर्ती है।",
        "می‌روم به خانه. کتاب‌ها روی میز است.",
        "ព្រះអាទិត្យរះ។ ខ្ញុំទៅផ្សារ។",
        "แมวเห็น\u200bแม่น้ำ\u200bวันนี้",
        "Її рідна мова; Сірі коні й Русь.",
        "ÇA, C'ÉTAIT L'ÎLE. NÃO, IRMÃO; ÅÄÖ ÆØÅ.",
    ],
)
def test_texts_have_no_signs(text):
    assert not found(text)


def test_an_excerpt_is_around_the_sign_and_shows_what_is_invisible():
    text = "The old ferry left the harbour before sunrise and no\x08body wondered why at all."
    shown = found(text, "So it left.")["controls"]
    assert shown.startswith("50.0 % of the texts (1): remove these characters")
    assert shown.endswith("; `…efore sunrise and no\\u0008body wondered why at…`")


def test_few_of_many_are_no_warning():
    counter = SignCounter()
    for number in range(200):
        counter.add("It left &amp; sank." if number < 2 else "It left.")
    assert list(counter.findings("rows")) == [
        (True, "markup", "1.0 % of the rows (2); `It left &amp; sank.`")
    ]
