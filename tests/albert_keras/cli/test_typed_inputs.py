"""Lines of stdin are texts or objects."""

import io
import sys

import pytest

from albert_keras.cli.predict import line_fields
from albert_keras.cli.typed_inputs import lines_of_stdin
from data_pipeline.errors import InputError


def give(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("data", [b"", b"\n \n", b" "])
def test_without_a_line_there_is_nothing_to_process(monkeypatch, data):
    give(monkeypatch, data)
    with pytest.raises(InputError, match="There is nothing to process"):
        lines_of_stdin()


def test_blank_lines_are_counted(monkeypatch, caplog):
    give(monkeypatch, b"a\n\n \nb\n")
    assert list(lines_of_stdin()) == [(1, "a"), (4, "b")]
    assert "skipped 2 blank lines of stdin: blank lines are not answered." in caplog.text


def test_a_line_that_is_not_utf_8_is_named(monkeypatch):
    give(monkeypatch, b"\xef\xbb\xbfa\r\n\n b\n\xff\nc\n")
    lines = lines_of_stdin()
    assert [next(lines), next(lines)] == [(1, "a"), (3, " b")]
    with pytest.raises(InputError, match="Line 4 of stdin is not UTF-8. Received: 0xff"):
        next(lines)


def test_a_line_is_a_text_or_an_object():
    assert line_fields(1, "a", {"pair": "b"}) == {"text": "a", "pair": "b"}
    assert line_fields(1, "a", {"question": "b"}) == {"context": "a", "question": "b"}
    assert line_fields(1, '{"text": "a", "pair": "c"}', {"pair": "b"})["pair"] == "c"
    with pytest.raises(InputError, match="Line 7 of stdin starts with { but is not a valid"):
        line_fields(7, "{", {})
