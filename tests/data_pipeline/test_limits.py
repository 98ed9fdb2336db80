"""What a file of others contains cannot make a program read, allocate or recurse without end."""

import json
import os
import time

import pytest

from data_pipeline.errors import InputError
from data_pipeline.limits import (
    check_memory,
    check_regular_file,
    parse_json,
    parse_yaml,
    read_json,
    read_limited,
    with_digest,
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


def test_a_record_whose_values_changed_is_refused(tmp_path):
    """One bit of a value, a key or the digest at a time; only the name of the digest may change."""
    path, record = tmp_path / "run.json", {"layers": 2, "task": {"labels": ["a", "b"], "x": 0.25}}
    path.write_text(json.dumps(with_digest(record), indent=2))
    assert read_json(path) == record
    content = path.read_bytes()
    for at in range(8 * len(content)):
        changed = bytearray(content)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            found = read_json(path)
        except InputError:
            continue
        kept = {name: value for name, value in found.items() if name in record}
        assert kept == record
    path.write_text(json.dumps(with_digest(record)).replace("0.25", "0.75"))
    with pytest.raises(InputError, match="damaged or was edited: .* Remove it. *$|remove the line"):
        read_json(path, "Remove it.")
    path.write_text(json.dumps(record))  # whoever changes it removes the digest
    assert read_json(path) == record


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 50_000])
def test_json_and_yaml_of_too_many_levels_are_refused_at_once(text):
    started = time.process_time()
    with pytest.raises(InputError, match="x is not valid YAML: it is nested too deeply"):
        parse_yaml(text, "x")
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


def test_a_repeated_key_of_a_description_is_refused(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"a": 1, "b": {"size": 1, "c": 2, "size": 2}}')
    with pytest.raises(InputError, match="`size` more than once"):
        read_json(path)
