"""What a file of others contains cannot make a program read, allocate or recurse without end."""

import io
import os
import time

import pytest

from data_pipeline import limits
from data_pipeline.errors import InputError
from data_pipeline.limits import (
    NotYaml,
    bounded_lines,
    check_memory,
    check_regular_file,
    parse_json,
    parse_yaml,
    read_limited,
)
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import read_model


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"1234")
    assert read_limited(path, 4) == b"1234"
    with pytest.raises(InputError, match="at most 3 bytes. Received: 4 bytes"):
        read_limited(path, 3)
    os.truncate(path, 10**12)  # sparse
    with pytest.raises(InputError, match="Received: 1,000,000,000,000 bytes"):
        read_limited(path)
    with pytest.raises(InputError, match="must be a regular file. Received: a pipe, a device"):
        read_limited("/dev/zero")
    for other in (path, tmp_path, tmp_path / "none"):
        check_regular_file(other)


def test_a_line_is_read_up_to_its_limit(monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 4)
    lines = bounded_lines(io.BytesIO(b"abc\nd\n\nabcd"), "x")
    assert list(lines) == [b"abc\n", b"d\n", b"\n", b"abcd"]
    with pytest.raises(InputError, match="x line 2 must have at most 4 bytes. Received: more"):
        list(bounded_lines(io.BytesIO(b"a\n" + b"b" * 100), "x"))


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000])
def test_json_and_yaml_of_too_many_levels_are_refused_at_once(text):
    started = time.process_time()
    with pytest.raises(NotYaml, match="nested too deeply"):
        parse_yaml(text)
    with pytest.raises(ValueError, match="nested too deeply|Expecting value"):
        parse_json(text)
    assert time.process_time() - started < 1


def test_more_than_the_memory_is_refused():
    check_memory(1000, "The model")
    with pytest.raises(InputError, match="The model must fit.*Received: 1,000,000.0 GB"):
        check_memory(10**15, "The model")


@pytest.mark.parametrize("piece", ["", "a\0b", "a" * 100_000])
def test_a_piece_that_ends_the_process_of_sentencepiece_is_refused(piece, tiny_tokenizer, tmp_path):
    model = read_model(tiny_tokenizer.model_bytes)
    model.pieces[20].piece = piece
    path = tmp_path / "spiece.model"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="1 to 1,000 characters, none of them NUL.*piece 20 with"):
        Tokenizer.load(path)
