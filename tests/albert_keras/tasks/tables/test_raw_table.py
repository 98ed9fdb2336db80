import pytest

from albert_keras.tasks.tables.raw_table import read_raw_table
from data_pipeline.errors import InputError

ROWS = [("Grüße aus Köln", "ja"), ("Dann kam, sagte er, Müller", "nein"), ("Das war es", "ja")] * 4


def table(delimiter, quote=False, header=("text", "label")):
    mark = '"' if quote else ""
    rows = [header, *ROWS]
    return "".join(delimiter.join(f"{mark}{cell}{mark}" for cell in row) + "\r\n" for row in rows)


def read(tmp_path, name, data, columns=("text", "label"), **settings):
    path = tmp_path / name
    path.write_bytes(data)
    return read_raw_table(path, columns, **settings)


@pytest.mark.parametrize(
    "name, text, encoding",
    [
        ("x.csv", table(",", quote=True), "utf-8-sig"),
        ("x.tsv", table("\t"), "utf-8"),
        ("x.txt", table("\t"), "utf-8-sig"),
        ("x.csv", table(";"), "utf-8"),
        ("x.csv", table("|", quote=True), "utf-8"),
        ("x.csv", table("\t"), "utf-8"),
    ],
)
def test_a_header_with_the_names_has_the_delimiter(tmp_path, caplog, name, text, encoding):
    found = read(tmp_path, name, text.encode(encoding))
    assert found.names == ["text", "label"] and not caplog.records
    assert [tuple(row.fields.values()) for row in found.rows] == ROWS


@pytest.mark.parametrize("encoding", ["windows-1252", "utf-16", "utf-16-le", "utf-32"])
def test_an_encoding_is_the_one_that_is_named(tmp_path, encoding):
    data = table(";").encode(encoding)
    found = read(tmp_path, "x.csv", data, encoding=encoding)
    assert [tuple(row.fields.values()) for row in found.rows] == ROWS
    with pytest.raises((InputError, AssertionError), match="must be UTF-8|text in UTF|must be CSV"):
        assert not any(row.problem for row in read(tmp_path, "x.csv", data).rows), "must be UTF-8"


def test_columns_by_number_are_separated_by_a_comma_or_what_is_given(tmp_path):
    data = b"yes, we;1\nno;0\n"
    found = read(tmp_path, "x.csv", data, [0, 1], has_header=False, delimiter=";")
    assert [row.fields for row in found.rows] == [{"0": "yes, we", "1": "1"}, {"0": "no", "1": "0"}]
    with pytest.raises(InputError, match="has no column 1: it has 1.* or what `delimiter` name"):
        read(tmp_path, "x.csv", b"a;1\nb;0\n", [0, 1], has_header=False)


@pytest.mark.parametrize(
    "name, content, texts, labels",
    [
        ("x.csv", 'text,label\n"a, ""b""\r\nc",b\nd,a\n', ['a, "b"\r\nc', "d"], "ba"),
        ("x.csv", 'text,label\na "b" c,b\nd,a\n', ['a "b" c', "d"], "ba"),
        ("x.tsv", 'text\tlabel\n"a, ""b""\tb\nc\ta\n', ['"a, ""b""', "c"], "ba"),
        ("x.tsv", 'text\tlabel\n"one"\tb\n"a lone mark\ta\n', ['"one"', '"a lone mark'], "ba"),
        (
            "x.json",
            '[{"text": "a",\n "label": "b"}, {"text": "c", "label": "a"}]',
            ["a", "c"],
            "ba",
        ),
    ],
)
def test_an_ending_says_how_a_table_is_written(name, content, texts, labels, tmp_path):
    rows = read(tmp_path, name, content.encode()).rows
    assert [row.fields["text"] for row in rows] == texts
    assert [row.fields["label"] for row in rows] == list(labels)
