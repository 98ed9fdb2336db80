import time

import pytest

from data_pipeline.text.corpus import Document
from data_pipeline.text.sentences import (
    MAX_CHUNK_CHARS,
    MAX_QUOTED_CHARS,
    SPLITTERS,
    split_sentences,
)

GERMAN = "Der Zug kam um 7.15 Uhr an. Wer wartete? »Niemand!«, sagte Frau Öztürk (leise)."
CHINESE = "火车早上到了。谁在等？“没有人！”她小声说。"
KOREAN = "기차가 아침에 도착했다. 누가 기다렸을까? 아무도 없었다!"


def split(text, **settings):
    return split_sentences(Document("x", tuple(text.split("\n"))), **settings)


def characters(texts):
    return "".join("".join(texts).split())


@pytest.mark.parametrize(
    "language, sentences",
    [
        ("en", ["Mr. Smith paid $3.50 to Dr. Jones.", "He left.", "Did he?"]),
        ("de", ["Er kam am 3. Mai.", "Sie ging."]),
        ("en", ["It raises asyncio.CancelledError at once.", "Catch it."]),
    ],
)
def test_titles_numbers_and_dotted_names_do_not_end_a_sentence(language, sentences):
    assert split(" ".join(sentences), language=language) == sentences
    assert split("你好。再见！", language="zh") == ["你好。", "再见！"]


def test_a_short_quotation_stays_whole_and_a_long_one_is_split_inside():
    assert split('"I came. I saw." He left.') == ['"I came. I saw."', "He left."]
    speech = "This is a sentence of the speech. " * 9
    parts = split(f'He said: "{speech}It ends." "Does it?" Mr. Brown asked.')
    assert len(speech) > MAX_QUOTED_CHARS
    assert parts[0] == 'He said: "This is a sentence of the speech.'
    assert parts[9:] == ['It ends."', '"Does it?"', "Mr. Brown asked."]


def test_a_long_paragraph_is_split_without_a_double_blank():
    sentence = "他说" * 50 + "。"
    text = f"{sentence * 99} ？{sentence * 10}"
    assert len(text) > MAX_CHUNK_CHARS > len(sentence * 99)
    sentences = split(text, language="zh")
    assert sentences[98:100] == [f"{sentence} ？", sentence]
    assert characters(sentences) == characters([text])


def test_line_takes_every_paragraph_as_a_sentence():
    assert split("One. Two.\nThree.", splitter="line") == ["One. Two.", "Three."]


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("language, text", [("de", GERMAN), ("zh", CHINESE), ("ko", KOREAN)])
def test_no_splitter_loses_a_character(splitter, language, text):
    paragraphs = (text * 9, "  ", f"({text}", "…?! — »“", "\u200b👩‍🚀. e\u0301 \ufeff.a", "x" * 300)
    sentences = split_sentences(Document("x", paragraphs), splitter, language)
    assert characters(sentences) == characters(paragraphs)
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)


@pytest.mark.parametrize("unit", ["word ", "“", '"Hi. '])
def test_long_lines_of_any_kind_take_linear_time(unit):
    text = (unit * 60_000)[:60_000].strip()
    start = time.process_time()
    sentences = split(text)
    # Unclosed quotation marks took sentencex itself more than that (quadratic).
    assert time.process_time() - start < 1.2
    assert characters(sentences) == characters([text])
