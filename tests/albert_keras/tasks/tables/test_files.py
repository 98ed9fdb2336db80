import logging

import pytest

from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.tables.files import label_names, read_table
from data_pipeline.errors import InputError


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "name, text",
    [
        ("x.tsv", "mood\tbody\treply\ngood\tA b.\tC.\n bad \tD.\t\n"),
        ("x.tsv", "\ufeffmood\tbody\treply\r\ngood\tA b.\tC.\r\nbad\tD.\t\r\n\r\n"),
        ("x.CSV", 'mood,body,reply\ngood,"A b.",C.\nbad,D.,""\n'),
        (
            "x.jsonl",
            '{"body": "A b.", "reply": "C.", "mood": "good"}\n'
            '{"mood": "bad", "more": [1], "reply": "", "body": "D."}\n\n',
        ),
    ],
)
def test_the_formats_hold_the_same(tmp_path, name, text):
    path = write(tmp_path, name, text)
    assert read_table(path, "body", "reply", "mood") == [
        TextExample("0", "A b.", "C.", "good"),
        TextExample("1", "D.", "", "bad"),
    ]


def test_columns_by_number_mean_that_there_is_no_header(tmp_path):
    path = write(tmp_path, "x.csv", "1,A.\n0,B.\n")
    expected = [TextExample("0", "A.", None, "1"), TextExample("1", "B.", None, "0")]
    assert read_table(path, 1, label=0) == expected
    assert read_table(path, "1", label="0") == expected
    found = read_table(path, 1, label="name in the training", labelled=False)
    assert [example.first for example in found] == ["A.", "B."]


def test_json_numbers_and_truth_values_are_names_of_classes(tmp_path):
    path = write(tmp_path, "x.jsonl", '{"t": "A.", "l": 1}\n{"t": "B.", "l": true}\n')
    assert [example.label for example in read_table(path, "t", label="l")] == ["1", "true"]


@pytest.mark.parametrize(
    "labels, expected",
    [
        (["b", "a", "b", "C"], ("C", "a", "b")),
        (["10", "9", "-1"], ("-1", "9", "10")),
        (["10", "9", "--1"], ("--1", "10", "9")),
        (["10", "9" * 5000], ("10", "9" * 5000)),
    ],
)
def test_label_names_are_ordered(labels, expected):
    examples = [TextExample("0", "A.", None, label) for label in labels]
    assert label_names(examples) == expected


def test_bad_rows_are_skipped_counted_and_listed(tmp_path, caplog):
    rows = 'good,A.\ngood,\nbad\nbad,"B\nC."\nbad,D,e\ngood,F.\n'
    path, skipped = write(tmp_path, "x.csv", "mood,text\n" + rows), []
    with caplog.at_level(logging.WARNING):
        examples = read_table(path, "text", label="mood", skipped=skipped)
    assert [(one.id, one.first) for one in examples] == [("0", "A."), ("3", "B\nC."), ("5", "F.")]
    assert [(row.line, row.raw) for row in skipped] == [(3, "good,"), (4, "bad"), (7, "bad,D,e")]
    assert "skipped 3 of 6 rows" in caplog.text
    assert skipped[0].reason == "`text` must be a text. It is blank."


def test_what_follows_an_open_quote_is_not_guessed(tmp_path):
    path = write(tmp_path, "x.csv", 'mood,text\ngood,"open\nbad,text\n')
    with pytest.raises(InputError, match="line 2 must be CSV: unexpected end of data"):
        read_table(path, "text", label="mood", skipped=[])
