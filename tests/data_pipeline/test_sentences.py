import time

import pytest

from data_pipeline.corpus import Document, read_corpus
from data_pipeline.errors import InputError
from data_pipeline.sentences import MAX_QUOTED_CHARS, split_sentences


def split(text, **settings):
    return split_sentences(Document("x", tuple(text.split("\n"))), **settings)


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


def test_marks_without_a_word_stay_with_the_sentence_before_them():
    assert split("Really?! ?! No. ... Yes! -") == ["Really?! ?!", "No. ...", "Yes! -"]


def test_line_takes_every_paragraph_as_a_sentence():
    assert split("One. Two.\nThree.", splitter="line") == ["One. Two.", "Three."]


def test_given_sentences_stay_whatever_the_splitter():
    document = Document("x", ("One. Two.", "Three."), sentences_given=True)
    assert split_sentences(document) == ["One. Two.", "Three."]


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"splitter": "sentencx"}, "`splitter=sentencx`.*did you mean `sentencex`"),
        ({"language": "english"}, "`language=english`.*known are.*en"),
    ],
)
def test_unknown_names_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        split("Text.", **settings)


@pytest.mark.parametrize("unit", ["word ", "x", "“", "'", '"Hi. ', '"(', "a. ", "."])
def test_long_lines_of_any_kind_take_linear_time(unit):
    text = (unit * 200_000)[:200_000].strip()
    start = time.process_time()
    sentences = split(text)
    # Unclosed quotation marks took sentencex itself 13 s for as much (quadratic).
    assert time.process_time() - start < 4
    assert "".join("".join(sentences).split()) == "".join(text.split())


def test_a_real_book_loses_no_character_and_is_cut_well(shared_data):
    documents = list(read_corpus([shared_data / "corpus/books-en/Austen_Pride.txt"]))
    sentences = [split_sentences(document) for document in documents]
    for document, parts in zip(documents, sentences, strict=True):
        assert "".join("".join(parts).split()) == "".join(document.text.split())
    found = [sentence for parts in sentences for sentence in parts]
    assert 4_500 < len(found) < 8_000
    assert sum(sentence.endswith(("Mr.", "Mrs.")) for sentence in found) < 0.01 * len(found)
    assert max(map(len, found)) < 1_500
