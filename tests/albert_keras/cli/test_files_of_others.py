"""Each command refuses a file of another kind: what is no text in UTF-8, and what is no model."""

import gzip

import pytest

from albert_keras.cli import main

FILES = {
    "a.csv.gz": (gzip.compress(b"text,label\nx,1\n"), "compressed by gzip"),
    "a.csv": (gzip.compress(b"text,label\nx,1\n"), "compressed by gzip"),
    "a.parquet": (b"PAR1" + bytes(range(256)), "Parquet"),
    "a.warc": (b"WARC/1.0\r\nWARC-Type: response\r\n", "an archive of web pages"),
}
COLUMNS = ["--text", "text", "--label", "label"]
COMMANDS = [
    ["data", "check", "--task", "classification", *COLUMNS, "--train"],
    ["embed", "albert-mini-en", "--text-column", "text", "--out", "v.npy", "--file"],
    ["vocab", "--out", "v", "--corpus"],
    ["data", "check"],
]


@pytest.fixture(autouse=True)
def _files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, (content, _) in FILES.items():
        (tmp_path / name).write_bytes(content)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words[:3]))
def test_a_command_refuses_what_is_no_text(name, command, capsys):
    assert main([*command, name]) == 2
    assert f"{name}` must be text. It is {FILES[name][1]}" in capsys.readouterr().err


def test_a_foreign_export_and_a_keras_file_are_no_fine_tunings(tmp_path, capsys):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(b"\x08\x01")
    (tmp_path / "model.keras").write_bytes(b"PK")
    for name, kind in (("model", "a SavedModel of another program"), ("model.keras", "a `.keras`")):
        assert main(["predict", name, "text"]) == 2
        assert f"`{name}` is {kind}" in capsys.readouterr().err
