import itertools
import re
import subprocess
import sys
import time

import pytest

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import Document, read_corpus
from data_pipeline.text.sentences import (
    MAX_CHUNK_CHARS,
    MAX_QUOTED_CHARS,
    MAX_SPAN_CHARS,
    SPLITTERS,
    _without_marks,
    check_splitter,
    split_sentences,
)

GERMAN = "Der Zug kam um 7.15 Uhr an. Wer wartete? »Niemand!«, sagte Frau Öztürk (leise)."
CHINESE = "火车早上到了。谁在等？“没有人！”她小声说。"
KOREAN = "기차가 아침에 도착했다. 누가 기다렸을까? 아무도 없었다!"


def split(text, **settings):
    return split_sentences(Document("x", tuple(text.split("\n"))), **settings)


def characters(texts):
    return "".join("".join(texts).split())


def test_titles_and_numbers_do_not_end_a_sentence():
    assert split("Mr. Smith paid $3.50 to Dr. Jones. He left. Did he?") == [
        "Mr. Smith paid $3.50 to Dr. Jones.",
        "He left.",
        "Did he?",
    ]


def test_paragraphs_are_split_each_for_itself_and_white_space_is_collapsed():
    assert split("Chapter One\nIt   was\tlate. He slept.\n \n") == [
        "Chapter One",
        "It was late.",
        "He slept.",
    ]


def test_the_language_decides_about_abbreviations():
    text = "Er kam am 3. Mai. Sie ging."
    assert split(text, language="de") == ["Er kam am 3. Mai.", "Sie ging."]


def test_chinese_needs_no_spaces():
    assert split("你好。再见！", language="zh") == ["你好。", "再见！"]


def test_korean_ends_its_sentences_as_english_does():
    assert split(KOREAN, language="ko") == [
        "기차가 아침에 도착했다.",
        "누가 기다렸을까?",
        "아무도 없었다!",
    ]


def test_dotted_names_stay_whole():
    text = "It raises asyncio.CancelledError at once. Catch it."
    assert split(text) == ["It raises asyncio.CancelledError at once.", "Catch it."]


def test_a_short_quotation_stays_whole_and_a_long_one_is_split_inside():
    assert split('"I came. I saw." He left.') == ['"I came. I saw."', "He left."]
    speech = "This is a sentence of the speech. " * 9
    parts = split(f'He said: "{speech}It ends." "Does it?" Mr. Brown asked.')
    assert len(speech) > MAX_QUOTED_CHARS
    assert parts[0] == 'He said: "This is a sentence of the speech.'
    assert parts[9:] == ['It ends."', '"Does it?"', "Mr. Brown asked."]


@pytest.mark.parametrize(
    "end, sentences",
    [
        ("'Twas late. 'So late.' She left.", ["'Twas late.", "'So late.'", "She left.]"]),
        ("It rose --- it fell. --- Who?", ["It rose --- it fell. ---", "Who?]"]),
        ("It rose. “(«No more!»)” Who?", ["It rose.", "“(«No more!»)”", "Who?]"]),
        ('It rose."Who fell?', ['It rose."', "Who fell?]"]),
        ("(It's O'Neil's) end. \"'Tis\" all.", ["(It's O'Neil's) end.", '"\'Tis" all.]']),
    ],
)
def test_inside_a_long_bracket_marks_stay_with_their_sentence(end, sentences):
    filler = "The rain went on and on over the dark hills and the river rose at the mill."
    assert split(f"[{filler} {filler} {filler} {end}]")[3:] == sentences


def test_marks_of_quotations_are_told_from_apostrophes():
    # The rule at leisure: "’" before a word is an apostrophe (’twas), "'" may be either.
    marks = re.compile(r"[\"“)—]|(?<=[.,])['’](?=\s|$)|(?:(?<=\s)|^)['‘]|--+")
    for text in map("".join, itertools.product(" a.'’‘-\"", repeat=5)):
        assert _without_marks(text) == marks.sub(lambda mark: " " * len(mark[0]), text)


def test_a_long_paragraph_is_split_without_a_double_blank():
    sentence = "他说" * 50 + "。"
    text = f"{sentence * 99} ？{sentence * 10}"
    assert len(text) > MAX_CHUNK_CHARS > len(sentence * 99)
    sentences = split(text, language="zh")
    assert sentences[98:100] == [f"{sentence} ？", sentence]
    assert characters(sentences) == characters([text])


@pytest.mark.parametrize(
    "space", ["\x85", "\xa0", "\u2003", "\u2028", "\u202f", "\u3000", "\t", "  "]
)
def test_any_white_space_is_a_blank(space):
    # All but the last two made sentencex panic.
    assert split(f"A{space}. B") == split("A . B")
    assert split(f"He{space}left.{space}", splitter="line") == ["He left."]


def test_marks_without_a_word_stay_with_the_sentence_before_them():
    assert split("Really?! ?! No. ... Yes! -") == ["Really?! ?!", "No. ...", "Yes! -"]


def test_line_takes_every_paragraph_as_a_sentence():
    assert split("One. Two.\nThree.", splitter="line") == ["One. Two.", "Three."]


def test_tensorflow_text_knows_no_abbreviations():
    assert split("Mr. Smith left. Did he?\n你好。再见！", splitter="tensorflow-text") == [
        "Mr.",
        "Smith left.",
        "Did he?",
        "你好。",
        "再见！",
    ]
    assert split(KOREAN, splitter="tensorflow-text") == split(KOREAN, language="ko")


def test_tensorflow_text_gives_the_text_back_whole():
    sentences = SPLITTERS["tensorflow-text"]([" Eins.  Zwei ", "", " "], "en")
    assert list(sentences) == [" Eins.  ", "Zwei ", "", " "]


def test_tensorflow_is_loaded_only_when_asked_for():
    code = (
        "import sys; from data_pipeline.text.sentences import *;"
        "from data_pipeline.text.corpus import *;"
        "split_sentences(Document('x', ('One. Two.',))); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr


def test_none_cuts_at_white_space_and_forgets_about_sentences():
    assert split("One. Two.", splitter="none") == ["One. Two."]
    text = "It ended. We " * 30
    spans = split(text, splitter="none")
    assert " ".join(spans) == text.strip()
    assert all(MAX_SPAN_CHARS - 6 < len(span) <= MAX_SPAN_CHARS for span in spans[:-1])
    assert any(span.endswith("It") for span in spans)


def test_none_cuts_chinese_anywhere_but_no_word_inside_it():
    assert list(map(len, split("火" * 250, splitter="none"))) == [100, 100, 50]
    text = "火" * 96 + "TensorFlow" + "车" * 10
    assert split(text, splitter="none") == ["火" * 96, "TensorFlow" + "车" * 10]


def test_none_cuts_an_endless_word_too():
    spans = split("a " + "x" * 250 + " b", splitter="none")
    assert spans == ["a", "x" * 100, "x" * 100, "x" * 50 + " b"]


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("language, text", [("de", GERMAN), ("zh", CHINESE), ("ko", KOREAN)])
def test_no_splitter_loses_a_character(splitter, language, text):
    paragraphs = (text * 9, "  ", f"({text}", "…?! — »“", "\u200b👩‍🚀. e\u0301 \ufeff.a", "x" * 300)
    sentences = split_sentences(Document("x", paragraphs), splitter, language)
    assert characters(sentences) == characters(paragraphs)
    assert all(sentence == " ".join(sentence.split()) != "" for sentence in sentences)


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_given_sentences_stay_whatever_the_splitter(splitter):
    given = ("One. Two.", "Three " * 40 + "ends.")
    assert split_sentences(Document("x", given, sentences_given=True), splitter) == list(given)


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_a_document_without_text_has_no_sentences(splitter):
    assert split_sentences(Document("x", ()), splitter) == []
    assert split_sentences(Document("x", (" ",)), splitter) == []


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"splitter": "sentencx"}, "`splitter=sentencx`.*Did you mean `sentencex`"),
        ({"splitter": "tensorflow_text"}, "Did you mean `tensorflow-text`"),
        ({"language": "english"}, "`language=english`.*Expected one of.*en"),
    ],
)
def test_unknown_names_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        split("Text.", **settings)
    with pytest.raises(InputError, match=message):
        check_splitter(**{"splitter": "sentencex", "language": "en"} | settings)


def test_all_splitters_pass_the_check():
    for splitter in SPLITTERS:
        check_splitter(splitter, "de")


@pytest.mark.parametrize("unit", ["word ", "x", "“", "'", '"Hi. ', '"(', "a. ", "."])
def test_long_lines_of_any_kind_take_linear_time(unit):
    text = (unit * 200_000)[:200_000].strip()
    start = time.process_time()
    sentences = split(text)
    # Unclosed quotation marks took sentencex itself 13 s for as much (quadratic).
    assert time.process_time() - start < 4
    assert characters(sentences) == characters([text])


def test_a_real_book_loses_no_character_and_is_split_well(shared_data):
    documents = list(read_corpus([shared_data / "corpus/books-en/Austen_Pride.txt"]))
    sentences = [split_sentences(document) for document in documents]
    for document, parts in zip(documents, sentences, strict=True):
        assert characters(parts) == characters([document.text])
    found = [sentence for parts in sentences for sentence in parts]
    assert 4_500 < len(found) < 8_000
    assert sum(sentence.endswith(("Mr.", "Mrs.")) for sentence in found) < 0.01 * len(found)
    assert max(map(len, found)) < 1_500
