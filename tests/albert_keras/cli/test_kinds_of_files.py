"""Each command and function calls a file of another kind by the same name."""

import gzip

import pytest

from albert_keras.cli import main

FILES = {
    "a.csv.gz": (gzip.compress(b"text,label\nx,1\n"), "compressed by gzip"),
    "a.csv": (gzip.compress(b"text,label\nx,1\n"), "compressed by gzip"),
    "a.parquet": (b"PAR1" + bytes(99), "a Parquet file"),
}
COLUMNS = ["--text", "text", "--label", "label"]
COMMANDS = [
    ["finetune", "--task", "classification", "--from", "random", *COLUMNS, "--out", "o", "--train"],
    ["finetune", "--task", "squad1", "--from", "random", "--out", "o", "--train"],
    ["finetune", "--task", "tagging", "--from", "random", "--out", "o", "--train"],
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
def test_a_command_names_the_kind(name, command, capsys):
    assert main([*command, name]) == 2
    assert f"cannot be read: it is {FILES[name][1]}. `" in capsys.readouterr().err


def test_a_foreign_export_and_a_keras_file_are_no_fine_tunings(tmp_path, capsys):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "saved_model.pb").write_bytes(b"\x08\x01")
    (tmp_path / "model.keras").write_bytes(b"PK")
    for name, kind in (("model", "a SavedModel of another program"), ("model.keras", "a `.keras`")):
        assert main(["predict", name, "text"]) == 2
        assert f"`{name}` is {kind}" in capsys.readouterr().err
