"""What a file of others contains cannot make a program read, allocate or recurse without end."""

import contextlib
import io
import os
import threading
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
from data_pipeline.text import storage
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import read_model


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@contextlib.contextmanager
def ends_soon(pipe):
    """Ends a reader that waits for the pipe, whose test would never end otherwise."""

    def end():
        with contextlib.suppress(OSError):  # nobody reads
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))

    timer = threading.Timer(5, end)
    timer.start()
    yield
    timer.cancel()


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "pipe"])
def test_a_pipe_or_a_device_is_refused_at_once(path, pipe):
    path = pipe if path == "pipe" else path
    for read in (read_limited, check_regular_file, storage.open_to_read, Tokenizer.load):
        with ends_soon(pipe), pytest.raises(InputError, match="must be a regular file. Received"):
            read(path)


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"1234")
    assert read_limited(path, 4) == b"1234"
    with pytest.raises(InputError, match="at most 3 bytes. Received: 4 bytes"):
        read_limited(path, 3)
    os.truncate(path, 10**12)  # sparse
    with pytest.raises(InputError, match="Received: 1,000,000,000,000 bytes"):
        read_limited(path)
    with pytest.raises(IsADirectoryError):
        read_limited(tmp_path)
    check_regular_file(path)
    check_regular_file(tmp_path)
    check_regular_file(tmp_path / "none")


def test_a_line_is_read_up_to_its_limit(monkeypatch):
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 4)
    lines = bounded_lines(io.BytesIO(b"abc\nd\n\nabcd"), "x")
    assert list(lines) == [b"abc\n", b"d\n", b"\n", b"abcd"]
    with pytest.raises(InputError, match="x line 2 must have at most 4 bytes. Received: more"):
        list(bounded_lines(io.BytesIO(b"a\n" + b"b" * 100), "x"))


def test_json_of_too_many_levels_is_a_value_error():
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 200_000)


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000])
def test_yaml_of_too_many_levels_is_refused_at_once(text):
    started = time.process_time()
    with pytest.raises(NotYaml, match="nested too deeply"):
        parse_yaml(text)
    assert time.process_time() - started < 1


def test_more_than_the_memory_is_refused():
    check_memory(1000, "The model")
    with pytest.raises(InputError, match="The model must fit.*Received: 1,000,000.0 GB"):
        check_memory(10**15, "The model")


@pytest.mark.parametrize("piece", ["", "\0", "a\0b", "a" * 100_000])
def test_a_piece_that_ends_the_process_of_sentencepiece_is_refused(piece, tiny_tokenizer, tmp_path):
    model = read_model(tiny_tokenizer.model_bytes)
    model.pieces[20].piece = piece
    path = tmp_path / "spiece.model"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match="1 to 1,000 characters, none of them NUL.*piece 20 with"):
        Tokenizer.load(path)
