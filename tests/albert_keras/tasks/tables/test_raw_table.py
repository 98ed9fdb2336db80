import logging
import time

import pytest

from albert_keras.tasks.tables.raw_table import read_raw_table
from albert_keras.tasks.tagging.files import read_tagged
from data_pipeline import limits
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


def test_a_table_of_very_many_columns_is_refused_at_once(tmp_path):
    for ending, sign in ((".csv", ","), (".tsv", "\t"), (".conll", " ")):
        path, row = tmp_path / f"a{ending}", sign.join(map(str, range(200_000)))
        path.write_text(f"{row}\n{row}\n")
        begun = time.monotonic()
        with pytest.raises(InputError, match="at most 4,096 columns. Received: 200,000"):
            read_tagged(path) if ending == ".conll" else read_raw_table(path, ["0"])
        assert time.monotonic() - begun < 10  # several minutes, if all names are compared


@pytest.mark.parametrize(
    "name, text, encoding, detected",
    [
        ("x.csv", table(",", quote=True), "utf-8-sig", ("utf-8", ",")),
        ("x.tsv", table("\t"), "utf-8", ("utf-8", "\t")),
        ("x.txt", table(";"), "utf-8", ("utf-8", ";")),
        ("x.csv", table(";"), "utf-8", ("utf-8", ";")),
        ("x.csv", table("|", quote=True), "utf-8", ("utf-8", "|")),
        ("x.tsv", table(";", quote=True), "utf-8", ("utf-8", ";")),
        ("x.csv", "sep=;\r\n" + table(";"), "utf-8", ("utf-8", ";")),
        ("x.csv", table(";"), "windows-1252", ("windows-1252", ";")),
        ("x.csv", table("\t"), "utf-16", ("utf-16", "\t")),
        ("x.csv", table(";"), "utf-16-le", ("utf-16-le", ";")),
        ("x.csv", table(";"), "utf-32", ("utf-32", ";")),
    ],
)
def test_what_programs_write_is_detected(tmp_path, caplog, name, text, encoding, detected):
    with caplog.at_level(logging.INFO):
        found = read(tmp_path, name, text.encode(encoding))
    assert found.names == ["text", "label"]
    assert [tuple(row.fields.values()) for row in found.rows] == ROWS
    usual = {"csv": ",", "tsv": "\t", "txt": "\t"}[name[-3:]]
    assert len(caplog.records) == (0 if detected == ("utf-8", usual) else 1)
    assert ("`;` as the delimiter" in caplog.text) == (detected[1] == ";")
    assert (f"the encoding {detected[0]}" in caplog.text) == (detected[0] != "utf-8")


@pytest.mark.parametrize("text", ["Привет, как дела", "你好，一切都好吗"])
def test_utf_16_is_recognized_in_any_script(tmp_path, text):
    table = "text\tlabel\n" + f"{text}\t1\n" * 20
    found = read(tmp_path, "x.tsv", table.encode("utf-16-le"))
    assert found.rows[-1].fields == {"text": text, "label": "1"}


def test_a_given_encoding_is_not_detected(tmp_path, caplog):
    data = table(",", quote=True).encode("latin-1")
    with caplog.at_level(logging.INFO):
        found = read(tmp_path, "x.csv", data, encoding="latin-1")
    assert [tuple(row.fields.values()) for row in found.rows] == ROWS and not caplog.records


def test_the_names_of_a_header_reveal_any_delimiter(tmp_path, caplog):
    rows = ["text,x~label", *["Yes, we~1", "No~0"] * 9]
    data = "\n".join(rows).encode()
    with caplog.at_level(logging.INFO):
        found = read(tmp_path, "x.csv", data, ["label"])
    assert found.names == ["text,x", "label"] and list(found.rows[1].fields.values()) == ["No", "0"]
    assert "detected `~` as the delimiter" in caplog.text
    with pytest.raises(
        InputError, match="has no column 1: it has 1.*\n.*another sign, if a header"
    ):
        read(tmp_path, "x.tsv", b"a~b\nc~d\n", [1], has_header=False)


@pytest.mark.parametrize(
    "data",
    [
        "text\tlabel\nПривет, как дела\tda\n".encode("windows-1251"),
        "text\tlabel\nこんにちは世界\tda\n".encode("shift_jis"),
        "text\tlabel\nGrüße, Käse und Öl\tja\n".encode() + b"M\xfcller\tja\n",
        b"text\tlabel\nA\x81\tja\n",
    ],
)
def test_bytes_that_may_be_anything_are_reported_with_their_line(tmp_path, data):
    found = read(tmp_path, "x.tsv", data)
    assert "must be UTF-8. Its byte" in found.rows[-1].problem


def test_a_line_without_end_is_an_error_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 9)
    with pytest.raises(InputError, match="line 2 must have at most 9 bytes"):
        read(tmp_path, "x.tsv", b"a\tb\n" + b"a" * 20, ())


def swallowing(first, last, label):
    """Returns a table with a mark before a text and another one after the text of a later row."""
    rows = [f"row {n},{label(n)},{n % 2}" for n in range(60)]
    rows[first], rows[last] = f'"{rows[first]}', rows[last].replace(",", '",', 1)
    return "\n".join(["text,label,flag", *rows])


@pytest.mark.parametrize("label", ["ab".__getitem__, str], ids=["names", "numbers"])
@pytest.mark.parametrize("first, last", [(20, 59), (3, 4), (0, 12)])
def test_a_mark_that_swallows_rows_is_one_row_that_cannot_be_used(first, last, label, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(swallowing(first, last, lambda n: label(n % 2 if label is not str else n)))
    rows = read_raw_table(path, ["text", "label"]).rows
    assert len(rows) == 60
    [bad] = [row for row in rows if row.problem]
    assert bad.line == first + 2 and f"closed in line {last + 2}" in bad.problem
    assert rows[last].fields["text"] == f'row {last}"'


@pytest.mark.parametrize(
    "text",
    [
        "one, two\nthree, four",
        "a\nb\nc\nd\ne",
        "Dear all, I\nagree, and\nso, too\n, do\nwe, here",
        "x,a\ny",
    ],
)
def test_texts_of_several_lines_stay_texts(text, tmp_path):
    path = tmp_path / "x.csv"
    rows = [
        f'"{text}","{"ab"[n % 2]}"' if n % 7 == 0 else f"row {n},{'ab'[n % 2]}" for n in range(50)
    ]
    path.write_text("\n".join(["text,label", *rows]))
    found = read_raw_table(path, ["text", "label"]).rows
    assert [row.problem for row in found] == [None] * 50
    assert found[0].fields["text"] == text
