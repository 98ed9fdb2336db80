"""`albert-keras convert`: what it says, and how it fails."""

import json

import pytest

from albert_keras.cli import main


@pytest.fixture
def call(capsys):
    def call(*words):
        code = main(["convert", *map(str, words)])
        return code, *capsys.readouterr()

    return call


def test_source_target_and_next_command_are_printed(call, tiny_run, tmp_path):
    code, out, _ = call(tiny_run, tmp_path / "there", "--to", "google")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"read `{tiny_run}` (albert-keras)"
    assert "  head masked_lm: converted" in lines
    assert "  vocabulary: 307 pieces" in lines
    assert any(line.startswith(f"wrote {tmp_path / 'there'} (google)") for line in lines)
    code, out, _ = call(tmp_path / "there", tmp_path / "back")
    assert code == 0
    assert f"next: albert-keras finetune --from {tmp_path / 'back'}" in out


def test_json_is_the_result(call, tiny_run, tmp_path):
    code, out, _ = call(tiny_run, tmp_path / "there", "--to", "google", "--json")
    result = json.loads(out)
    assert (code, result["format"], result["path"]) == (0, "google", str(tmp_path / "there"))
    assert result["heads"] == ["masked_lm", "sentence_order"]
