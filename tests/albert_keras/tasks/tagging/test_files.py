"""Tagged sentences are read, aligned to tokens and read back."""

import json

import numpy as np
import pytest

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.labels import hold_out
from albert_keras.tasks.tagging.features import NOT_SCORED, tag_features
from albert_keras.tasks.tagging.files import read_tagged
from data_pipeline.errors import InputError

COLUMNS = """-DOCSTART- -X- O O

Seven NN B-NP O
geese NNS I-NP O

-DOCSTART- O
Lisbon NNP B-NP B-LOC
slept VBD B-VP O
"""
SENTENCES = [
    TaggedExample("a", ("The", "old", "harbour", "of", "Lisbon"), ("O", "O", "O", "O", "LOC")),
    TaggedExample("b", ("Nobody", "slept"), ("O", "O")),
]


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_columns_are_read_by_number_or_from_the_end(tmp_path):
    path = write(tmp_path / "train.txt", COLUMNS)
    assert read_tagged(path) == [
        TaggedExample("1", ("Seven", "geese"), ("O", "O")),
        TaggedExample("2", ("Lisbon", "slept"), ("B-LOC", "O")),
    ]
    assert [example.tags for example in read_tagged(path, label=1)] == [
        ("NN", "NNS"),
        ("NNP", "VBD"),
    ]
    assert read_tagged(path, text=1, label=-4)[0].words == ("NN", "NNS")
    words = write(tmp_path / "words.txt", "Seven\ngeese\n")
    assert read_tagged(words, label=1, has_tags=False) == [TaggedExample("1", ("Seven", "geese"))]


def test_tabs_spaces_byte_order_marks_and_line_ends_do_not_matter(tmp_path):
    content = "\ufeffSeven \t O\r\ngeese\tO\t\r\n \t\r\n\r\n\ufeffLisbon   B-LOC"
    assert read_tagged(write(tmp_path / "dev.txt", content)) == [
        TaggedExample("1", ("Seven", "geese"), ("O", "O")),
        TaggedExample("2", ("Lisbon",), ("B-LOC",)),
    ]


def test_objects_are_read(tmp_path):
    first = '{"words": ["a b", "c"], "tags": ["X", "Y"], "id": 7}'
    content = f'\ufeff{first}\r\n\n{{"words": ["d"], "tags": ["Z"]}}'
    path = write(tmp_path / "x.jsonl", content)
    assert read_tagged(path) == [
        TaggedExample("7", ("a b", "c"), ("X", "Y")),
        TaggedExample("2", ("d",), ("Z",)),
    ]
    assert read_tagged(path, has_tags=False)[1] == TaggedExample("2", ("d",))


@pytest.mark.parametrize(
    "name, content, options, says",
    [
        ("x", "a O\n\nb X O\n", {}, "line 3 must have 2 columns, like the other lines. .*: 3"),
        ("x", "\na\nb\n", {}, "must have a column of words and one of tags"),
        ("x", "a O\n", {"label": 2}, "must have .* Received: `label=2`, 2 columns"),
        ("x", b"a O\nb\x81 O\n", {}, r"line 2 must be UTF-8. Its byte 1 \(0x81\) is not"),
        ("x", "-DOCSTART- O\n\n", {}, "must contain at least one row"),
        ("x.jsonl", '{"words": ["a", ""], "tags": ["X", "Y"]}', {}, r"line 1 `words\[1\]`"),
        ("x.jsonl", '{"words": ["a", "b"], "tags": ["X"]}', {}, "every word. Received: 1 for 2"),
    ],
)
def test_a_broken_line_is_named(tmp_path, name, content, options, says):
    with pytest.raises(InputError, match=f"{name}`.*{says}"):
        read_tagged(write(tmp_path / name, content), **options)


def test_the_first_token_of_a_word_has_its_tag(tiny_tokenizer):
    tag_names = ["LOC", "O"]
    laid_out = tag_features(SENTENCES, tiny_tokenizer, 48, tag_names)
    features = laid_out.batch(range(len(SENTENCES)))
    for row, example in enumerate(SENTENCES):
        ids, tags, starts = [tiny_tokenizer.cls_id], [NOT_SCORED], [0]
        for word, tag in zip(example.words, example.tags, strict=True):
            pieces = tiny_tokenizer.encode(word)
            ids += pieces
            tags += [tag_names.index(tag)] + [NOT_SCORED] * (len(pieces) - 1)
            starts += [1] + [0] * (len(pieces) - 1)
        assert max(map(len, map(tiny_tokenizer.encode, example.words))) > 1
        ids.append(tiny_tokenizer.sep_id)
        padding = 48 - len(ids)
        assert features["input_ids"][row].tolist() == ids + [tiny_tokenizer.pad_id] * padding
        assert features["input_mask"][row].sum() == len(ids)
        assert features["tag_ids"][row].tolist() == tags + [NOT_SCORED] * (padding + 1)
        assert laid_out.word_starts[row].tolist() == starts + [0] * (padding + 1)
    assert {values.dtype for values in features.values()} == {np.dtype(np.int32)}


def test_windows_overlap_and_drop_no_token(tiny_tokenizer):
    long = TaggedExample("long", ("ferry",) * 9 + ("x" * 60,) + ("harbour",) * 20)
    pieces = [tiny_tokenizer.encode(word) for word in long.words]
    tokens, room = sum(pieces, []), 10
    assert max(map(len, pieces)) > room  # a word that is longer than a window
    laid_out = tag_features([SENTENCES[1], long, SENTENCES[1]], tiny_tokenizer, room + 2)
    features = laid_out.batch(range(len(laid_out)))
    windows = [
        ids[mask == 1][1:-1].tolist()
        for ids, mask in zip(features["input_ids"], features["input_mask"], strict=True)
    ]
    begins = range(0, len(tokens) - room // 2, room // 2)
    assert windows[1:-1] == [tokens[begin : begin + room] for begin in begins]
    first = 0
    for ids in pieces:  # a quarter of a window on both sides of a word, except at the ends
        [(row, column)] = [
            (row, column)
            for row, column in np.argwhere(laid_out.word_starts)
            if 0 < row < len(windows) - 1 and begins[row - 1] + column - 1 == first
        ]
        left, right = column - 1, len(windows[row]) - column
        assert min(left, right) >= min(room // 4, first, len(tokens) - 1 - first)
        first += len(ids)


def test_a_word_of_nothing_is_an_unknown_token(tiny_tokenizer):
    assert tiny_tokenizer.encode("\u00a0") == []
    features = tag_features([TaggedExample("1", ("\u00a0",), ("O",))], tiny_tokenizer, 4, ["O"])
    batch = features.batch([0])
    assert batch["input_ids"][0, 1] == tiny_tokenizer.unk_id
    assert batch["tag_ids"].tolist() == [[NOT_SCORED, 0, NOT_SCORED, NOT_SCORED]]


def test_rows_that_people_rejected_are_left_out(tmp_path):
    rows = [
        {"words": ["a"], "tags": ["X"], "answer": "accept"},
        {"words": ["b"], "tags": ["Y"], "answer": "reject"},
        {"words": ["c"], "answer": "ignore"},
    ]
    path, remarks = tmp_path / "a.jsonl", []
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [one.words for one in read_tagged(path, remarks=remarks)] == [("a",)]
    assert "left out 2 rows whose `answer` is reject or ignore, the first in line 2" in remarks[0]
    assert len(read_tagged(path, has_tags=False)) == 3


def test_tabs_separate_columns_beside_a_start_with_a_space(tmp_path):
    path = write(tmp_path / "a.conll", "-DOCSTART- O\n\nLisbon\tB-BIRTH PLACE\nslept\tO\n")
    assert read_tagged(path)[0].tags == ("B-BIRTH PLACE", "O")
    path = write(tmp_path / "b.conll", "Ada O\nwas O\nin O\nLisbon B-BIRTH PLACE\n")
    with pytest.raises(InputError, match="by tabs if words or tags .*: 'Lisbon B-BIRTH PLACE"):
        read_tagged(path)


def test_a_number_of_several_words_may_have_nothing_else(tmp_path):
    path = write(
        tmp_path / "a.tsv", "#Text=a b c\n1-1\t0-1\ta\tX\n1-2\t2-3\tb\tY\n1-3\t4-5\tc\tX\n"
    )
    assert read_tagged(path, 2, 3) == [
        TaggedExample("1", ("a", "b", "c"), ("X", "Y", "X"))
    ]  # WebAnno
    path = write(tmp_path / "a.conllu", "# x\n1\ta\tX\n2-3\n2\tb\tY\n3\tc\tX\n4\td\tY\n")
    assert read_tagged(path, text=1, label=2)[0].words == ("a", "b", "c", "d")


def test_sentences_without_a_line_between_them_are_one(tmp_path):
    path = write(tmp_path / "a.conll", "Ada B-PER\nslept O\n. O\n" * 9)
    with pytest.raises(InputError, match="1 in 1 examples. .* an empty line after each sentence"):
        hold_out(read_tagged(path), 0.1)


def test_sentences_of_hundreds_of_words_are_told(tmp_path):
    for end, count in (("", 1), ("\n", 0)):
        path = write(tmp_path / "x.conll", f"Anna\tB-PER\nleft\tO\n.\tO\n{end}" * 90)
        remarks = []
        read_tagged(path, remarks=remarks)
        assert len(remarks) == count and all("have 270 words on average" in one for one in remarks)
