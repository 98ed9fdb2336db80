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


def test_result_is_printed_as_json_or_with_source_target_and_next_command(call, tiny_run, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    code, out, _ = call(tiny_run, there, "--to", "google", "--json")
    result = json.loads(out)
    assert (code, result["format"], result["path"]) == (0, "google", str(there))
    assert result["heads"] == ["masked_lm", "sentence_order"]
    code, out, _ = call(there, back)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"read `{there}` (google)"
    assert "  head masked_lm: converted" in lines
    assert "  vocabulary: 307 pieces" in lines
    assert any(line.startswith(f"wrote {back} (albert-keras)") for line in lines)
    assert f"next: albert-keras finetune --from {back}" in out
