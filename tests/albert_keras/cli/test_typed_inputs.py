"""Lines of stdin are read as they arrive."""

import io
import sys

import pytest

from albert_keras.cli import typed_inputs
from albert_keras.cli.predict import line_fields
from albert_keras.cli.typed_inputs import arriving_lines, converted_lines
from data_pipeline.errors import InputError


def give(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("data", [b"", b"\n \n", b" "])
def test_without_a_line_there_is_nothing_to_process(monkeypatch, data):
    give(monkeypatch, data)
    with pytest.raises(InputError, match="There is nothing to process"):
        list(arriving_lines())


def test_blank_lines_are_counted(monkeypatch, caplog):
    give(monkeypatch, b"a\n\n \nb\n")
    lines = converted_lines(arriving_lines(), lambda number, line: (number, line))
    assert list(lines) == [[(1, "a"), (4, "b")]]
    assert "skipped 2 blank lines of stdin: blank lines are not answered." in caplog.text


def test_lines_before_a_broken_one_are_yielded_first(monkeypatch):
    give(monkeypatch, b"\xef\xbb\xbfa\r\n\n b\n\xff\nc\n")
    lines = converted_lines(arriving_lines(), lambda number, line: (number, line))
    assert next(lines) == [(1, "a"), (3, " b")]
    with pytest.raises(InputError, match="Line 4 of stdin is not UTF-8. Received: 0xff"):
        next(lines)


def test_a_line_is_a_text_or_an_object():
    assert line_fields(1, "a", {"pair": "b"}) == {"text": "a", "pair": "b"}
    assert line_fields(1, "a", {"question": "b"}) == {"context": "a", "question": "b"}
    assert line_fields(1, '{"text": "a", "pair": "c"}', {"pair": "b"})["pair"] == "c"
    with pytest.raises(InputError, match="Line 7 of stdin starts with { but is not a valid"):
        line_fields(7, "{", {})


def test_a_line_without_end_is_an_error_before_it_is_read(monkeypatch):
    monkeypatch.setattr(typed_inputs, "_LONGEST_LINE", 1 << 17)
    give(monkeypatch, b"a\nb\n" + b"c" * (1 << 22))
    lines = arriving_lines()
    assert next(lines)
    with pytest.raises(InputError, match="(?i)stdin.* must have at most 131,072 bytes"):
        list(lines)
    assert sys.stdin.buffer.tell() < 1 << 20
