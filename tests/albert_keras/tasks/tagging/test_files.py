"""Tagged sentences are read, aligned to tokens and read back."""

import numpy as np
import pytest

from albert_keras.models.token_classification import NOT_SCORED
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.labels import hold_out
from albert_keras.tasks.tagging.files import read_tagged
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.small_tasks import rows_for

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
    content = "\ufeffSeven\tO\r\nmute geese \tO\r\n \t\r\n\r\nLisbon\tB-LOC"
    assert read_tagged(write(tmp_path / "dev.txt", content)) == [
        TaggedExample("1", ("Seven", "mute geese"), ("O", "O")),
        TaggedExample("2", ("Lisbon",), ("B-LOC",)),
    ]
    assert read_tagged(write(tmp_path / "x.txt", " Seven   O\n")) == [
        TaggedExample("1", ("Seven",), ("O",))
    ]


CONLL_U = """# text = Anna ate vámonos 10 000 .
1\tAnna\tanna\tPROPN
2\tate\teat\tVERB
3-4\tvámonos\t_\t_
3\tvamos\tir\tVERB
3.1\tdit\t_\t_
4\t10 000\t10\tNUM

# sent_id = 2
1\t#\t#\tSYM"""
GERMEVAL = "#\thttp://x [2009]\n1\tAnna\tB-PER\tO\n2\tging\tO\tO\n\n#\tn-tv.de\n1\tRom\tB-LOC\tO"
HF = '{"id": 4, "tokens": ["Anna", "slept"], "pos_tags": [2, 1], "ner_tags": [1, 0]}'
KAGGLE = 'Sentence #,Word,POS,Tag\nSentence: 1,Anna,NNP,B\n,"""",``,O\nSentence: 2,Zürich,NNP,B'
NAMED = 'Sentence #\ttoken\tner\nSentence: 1\tAnna\tB\n\t"\tO\nSentence: 2\tBonn\tB'


@pytest.mark.parametrize(
    "name, content, columns, words",
    [
        ("u.conllu", CONLL_U, (1, 3), "Anna/PROPN ate/VERB vamos/VERB 10 000/NUM, #/SYM"),
        ("a.tsv", GERMEVAL, (1, 2), "Anna/B-PER ging/O, Rom/B-LOC"),
        ("a.txt", "# O\nAnna B\n\n# a b\nBonn B", (), "#/O Anna/B, Bonn/B"),
        ("a.conll", "-DOCSTART- O\n\nAnna\tB-THE NAME\nleft\tO", (), "Anna/B-THE NAME left/O"),
        ("a.jsonl", HF, ("tokens", "ner_tags", ("O", "B-PER")), "Anna/B-PER slept/O"),
        ("a.jsonl", HF, ("tokens", "pos_tags", ("a", "V", "N")), "Anna/N slept/V"),
        ("a.csv", KAGGLE, (), 'Anna/B "/O, Zürich/B'),
        ("a.csv", "Word;Tag\nAnna;B\n\nBonn;O\n\n", (), "Anna/B, Bonn/O"),
        ("a.tsv", NAMED, ("token", "ner"), 'Anna/B "/O, Bonn/B'),
    ],
)
def test_the_documented_forms_are_read(name, content, columns, words, tmp_path):
    text, label, known = (*columns, *(None, None, ())[len(columns) :])
    found = read_tagged(write(tmp_path / name, content), text, label, known=known)
    pairs = (zip(one.words, one.tags, strict=True) for one in found)
    assert ", ".join(" ".join(map("/".join, sentence)) for sentence in pairs) == words
    assert found[0].id == ("4" if content == HF else "1")


def test_objects_are_read(tmp_path):
    first = '{"words": ["a b", "c"], "tags": ["X", "Y"], "id": 7}'
    content = f'\ufeff{first}\r\n{{"words": ["d"], "tags": ["Z"]}}'
    path = write(tmp_path / "x.jsonl", content)
    assert read_tagged(path) == [
        TaggedExample("7", ("a b", "c"), ("X", "Y")),
        TaggedExample("2", ("d",), ("Z",)),
    ]
    assert read_tagged(path, has_tags=False)[1] == TaggedExample("2", ("d",))


def rows_of(examples, tokenizer, length, labels=None):
    """Returns all rows of sentences, with their tags if there are labels."""
    config = TaskConfig(name="tagging", labels=labels or ("O", "X"), max_seq_length=length)
    rows = rows_for(build_task(config), examples, tokenizer, training=labels is not None)
    return rows.batch(np.arange(len(rows)))


def test_the_first_token_of_a_word_has_its_tag(tiny_tokenizer):
    tag_names = ["LOC", "O"]
    features = rows_of(SENTENCES, tiny_tokenizer, 48, tag_names)
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
        assert features["word_mask"][row].tolist() == starts + [0] * (padding + 1)
    assert {values.dtype for values in features.values()} == {np.dtype(np.int32)}


def test_a_word_of_nothing_is_an_unknown_token(tiny_tokenizer):
    assert tiny_tokenizer.encode("\u00a0") == []
    batch = rows_of([TaggedExample("1", ("\u00a0",), ("O",))], tiny_tokenizer, 8, ["O", "X"])
    assert batch["input_ids"][0, 1] == tiny_tokenizer.unk_id
    assert batch["tag_ids"].tolist() == [[NOT_SCORED, 0, *[NOT_SCORED] * 6]]


def test_sentences_without_a_line_between_them_are_one(tmp_path):
    path = write(tmp_path / "a.conll", "Ada B-PER\nslept O\n. O\n" * 9)
    with pytest.raises(InputError, match="1 in 1 examples. .* an empty line after each sentence"):
        hold_out(read_tagged(path), 0.1)
