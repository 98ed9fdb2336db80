"""Documents are read in six formats, split by content and written whole."""

import json

import pytest

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import (
    MAX_DOCUMENT_CHARS,
    Document,
    read_corpus,
    split_heldout,
    write_jsonl,
)
from data_pipeline.text.text_files import find_files


def read_text(tmp_path, text, format="auto", name="x.txt"):
    data = text if isinstance(text, bytes) else text.encode()
    (tmp_path / name).write_bytes(data)
    return list(read_corpus([tmp_path / name], format))


def paragraphs(documents):
    return [list(document.paragraphs) for document in documents]


def test_prose_joins_wrapped_lines_and_parts_at_blank_lines(tmp_path):
    text = "One line\n  goes on.\n \t\nSecond   paragraph.\n"
    wrapped = Document("x.txt", ("One line goes on.", "Second paragraph."))
    assert read_text(tmp_path, text) == [wrapped]
    long = "word " * 30 + "end."
    text = f"Before\nit.\n{long}\nAfter it.\n"
    assert paragraphs(read_text(tmp_path, text)) == [["Before it.", long, "After it."]]


def test_unspaced_scripts_are_joined_without_a_space_and_korean_with_one(tmp_path):
    text = "天下大势，\n分久必合\n\n한국어\n문장\n"
    assert paragraphs(read_text(tmp_path, text)) == [["天下大势，分久必合", "한국어 문장"]]


def test_line_ends_and_byte_order_mark_make_no_difference(tmp_path):
    for mark, end in ((b"", b"\n"), (b"\xef\xbb\xbf", b"\r\n"), (b"", b"\r")):
        data = mark + end.join([b"a", b"b", b"", b"c"])
        assert paragraphs(read_text(tmp_path, data)) == [["a b", "c"]]


def test_sentences_close_a_document_at_blank_lines_and_at_the_end_of_each_file(tmp_path):
    (tmp_path / "a.txt").write_text("One.\nTwo.\n \n\nThree.")
    (tmp_path / "b.txt").write_text("Four.\n")
    assert list(read_corpus([tmp_path], "sentences")) == [
        Document("a.txt:1", ("One.", "Two."), sentences_given=True),
        Document("a.txt:2", ("Three.",), sentences_given=True),
        Document("b.txt:1", ("Four.",), sentences_given=True),
    ]


def test_jsonl_takes_text_and_names_documents_by_id_title_or_line(tmp_path):
    records = [{"id": 7, "text": "a\n\nb"}, {"title": "T", "text": "c"}, {"text": "d"}]
    text = "\n".join(json.dumps(record) for record in records)
    documents = read_text(tmp_path, text, name="x.jsonl")
    assert [document.name for document in documents] == ["x.jsonl:7", "x.jsonl:T", "x.jsonl:3"]
    assert paragraphs(documents) == [["a", "b"], ["c"], ["d"]]


def test_wikiextractor_is_recognised_and_its_tags_are_no_text(tmp_path):
    text = '\n<doc id="1" title="A > B">\nA\n\nText.\n</doc>\n<doc id="2">\nC\n</doc>\n'
    documents = read_text(tmp_path, text, name="wiki_00")
    assert [document.name for document in documents] == ["wiki_00:1", "wiki_00:2"]
    assert paragraphs(documents) == [["A", "Text."], ["C"]]


def test_a_long_document_is_split_at_the_edges_of_paragraphs(tmp_path):
    block = "word " * 4000
    documents = read_text(tmp_path, f"{block}\n{block}\n{block}\n")
    assert [document.name for document in documents] == ["x.txt#1", "x.txt#2"]
    assert [len(document.paragraphs) for document in documents] == [2, 1]


def test_escapes_of_wikiextractor_are_resolved(tmp_path):
    page = '<doc id="1" url="x" title="A">\nIf a &lt; b &amp;&amp; c, say &quot;no&quot;.\n</doc>\n'
    (tmp_path / "wiki").write_text(page)
    record = {"id": "1", "url": "x", "title": "A", "text": "a &lt; b &amp; c"}
    (tmp_path / "wiki.jsonl").write_text(json.dumps(record))
    (tmp_path / "other.jsonl").write_text(json.dumps({"text": "a &lt; b"}))
    found = {one.name.split(":")[0]: one.text for one in read_corpus([tmp_path])}
    assert found == {
        "wiki": 'If a < b && c, say "no".',
        "wiki.jsonl": "a < b & c",
        "other.jsonl": "a &lt; b",
    }


def test_lines_are_paragraphs_or_documents_if_the_format_says_so(tmp_path):
    text = "One. Two.\nThree.\n\n \nFour.\n"
    blocks = read_text(tmp_path, text, "paragraphs")
    assert paragraphs(blocks) == [["One. Two.", "Three."], ["Four."]]
    alone = read_text(tmp_path, text, "documents")
    assert paragraphs(alone) == [["One. Two."], ["Three."], ["Four."]]
    assert [document.name for document in alone] == ["x.txt:1", "x.txt:2", "x.txt:5"]
    assert not any(document.sentences_given for document in blocks + alone)


FORMATS = ["prose", "sentences", "paragraphs", "documents", "jsonl", "wikiextractor"]


@pytest.mark.parametrize("format", FORMATS)
def test_one_line_of_a_megabyte_is_split_after_sentences_and_loses_nothing(tmp_path, format):
    text = "This sentence is here again. " * 36_000
    wrapped = {
        "jsonl": json.dumps({"text": text}),
        "wikiextractor": f'<doc id="1"> {text} </doc>',
    }.get(format, text)
    documents = read_text(tmp_path, wrapped, format)
    assert all(len(document.text) <= MAX_DOCUMENT_CHARS for document in documents)
    assert all(document.text.endswith("again.") for document in documents)
    assert " ".join(document.text for document in documents) == text.strip()


def test_sources_are_sorted_and_a_file_named_twice_is_read_once(tmp_path):
    (tmp_path / "sub").mkdir()
    for name in ("b.txt", "a.txt", "sub/c.txt", ".hidden.txt"):
        (tmp_path / name).write_text(name)
    sources = [tmp_path / "b.txt", tmp_path, str(tmp_path / "**" / "*.txt")]
    for order in (sources, sources[::-1]):
        names = [document.name for document in read_corpus(order)]
        assert names == ["a.txt", "b.txt", "sub/c.txt"]
    assert [file.path.name for file in find_files(sources)] == ["a.txt", "b.txt", "c.txt"]


@pytest.mark.parametrize(
    "data, format, message",
    [
        (b"ab\nc\xe4d\n", "auto", r"Byte 4 \(0xe4\).*such as CP1252, CP1251.*iconv -f ENCODING"),
        ("Gr\u00fc\u00dfe".encode("utf-16"), "auto", r"Byte 0 \(0xff\).*iconv -f ENC"),
        ("a€".encode()[:-1], "auto", r"Byte 1 \(0xe2\)"),
        (b"GIF89\x00\x01 and much more text to be found here", "auto", r"Byte 5 \(0x00\).*binary"),
        (b'{"text": "a"}\n{"text": \n', "jsonl", 'line 2 .*string "text"'),
        (b"[" * 100_000, "jsonl", "nested too deeply"),
        (b'{"text": "\\ud800"}', "jsonl", "surrogates not allowed"),
        (b'{"text": "a\\u0000"}', "jsonl", "without NUL"),
        (b'<doc id="1">\ntext\n', "auto", "line 1.*not closed"),
        (b'<doc id="1">\n</doc>\ntext\n', "auto", "line 3.*outside"),
        (b"</doc>\n", "wikiextractor", "line 1.*has no opening"),
        (b" \n\t\r\n", "auto", "is empty"),
    ],
)
def test_what_cannot_be_read_is_refused_with_file_and_place(tmp_path, data, format, message):
    with pytest.raises(InputError, match=message) as caught:
        read_text(tmp_path, data, format)
    assert "x.txt" in str(caught.value)


def test_what_is_written_is_read_back_as_the_same_texts(tmp_path):
    documents = [Document(f"d{n}", (f"Größe {n}.", '"Quoted" text.')) for n in range(3)]
    path = tmp_path / "new" / "corpus.jsonl"
    write_jsonl(documents, path)
    again = list(read_corpus([path]))
    assert [item.digest for item in again] == [item.digest for item in documents]
    assert again[0].name == f"corpus.jsonl:{documents[0].name}"


def test_a_broken_write_leaves_the_older_file_and_nothing_else(tmp_path):
    def broken():
        yield Document("a", ("Text.",))
        raise RuntimeError("no more")

    path = tmp_path / "corpus.jsonl"
    path.write_text("older")
    with pytest.raises(RuntimeError, match="no more"):
        write_jsonl(broken(), path)
    with pytest.raises(InputError, match="no document"):
        write_jsonl([], path)
    assert [item.name for item in tmp_path.iterdir()] == ["corpus.jsonl"]
    assert path.read_text() == "older"


def test_heldout_is_decided_by_the_text_and_not_by_the_order():
    documents = [Document("x", (f"Text {number}.",)) for number in range(2_000)]
    train, heldout = split_heldout(documents, fraction=0.05)
    assert 60 < len(heldout) < 140  # 100 expected, 10 the standard deviation
    assert len(train) + len(heldout) == 2_000
    backwards = split_heldout(documents[::-1], fraction=0.05)
    assert backwards == (train[::-1], heldout[::-1])
    fewer = split_heldout(documents[:1_000], fraction=0.05)[1]
    assert set(fewer) == set(heldout) & set(documents[:1_000])


def test_each_part_gets_a_document_however_few_there_are_but_one():
    for fraction in (0.001, 0.999):
        two = [Document("x", ("a",)), Document("y", ("b",))]
        train, heldout = split_heldout(two, fraction)
        assert len(train) == len(heldout) == 1
    with pytest.raises(InputError, match="two different documents"):
        split_heldout([Document("x", ("a",)), Document("y", ("a",))])
