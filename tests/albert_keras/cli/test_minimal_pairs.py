"""`albert-keras evaluate --minimal-pairs` and `predict --score`."""

import io
import json
import shutil

import pytest

from albert_keras import score_sentences
from albert_keras.cli import main

ROWS = [
    {"good": "The old ferry left.", "bad": "The ferry old left.", "group": "order"},
    {"good": "Rain.", "bad": "Rain.", "group": "same"},
]


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_minimal_pairs_are_evaluated(tiny_run, pairs, tmp_path, capsys):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    command = ["evaluate", "--run", str(run), "--minimal-pairs", str(pairs)]
    out = tmp_path / "scores.jsonl"
    assert main([*command, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "step 12, 2 minimal pairs; chance: 50.0 %" in shown and "mean of 2 groups" in shown
    assert "ties, each counted as one half: 1" in shown
    assert f"scores of each pair: {out}" in shown
    flags = ["--out", str(out), "--overwrite", "--mask-rest-of-word", "--step", "5", "--json"]
    assert main([*command, *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["step"], found["mask_rest_of_word"]) == (5, True)
    groups = {group["group"]: group for group in found["groups"]}
    assert groups["same"]["accuracy"] == 0.5 and groups["same"]["num_ties"] == 1
    assert found["mean"]["accuracy"] == found["overall"]["accuracy"]


def test_sentences_are_scored_from_arguments_and_stdin(tiny_run, monkeypatch, capsys):
    texts = ["The old ferry left.", "Rain."]
    expected = score_sentences(tiny_run, texts)
    assert main(["predict", str(tiny_run), *texts, "--score", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["text"] for one in found] == texts
    assert [one["score"] for one in found] == pytest.approx([one.score for one in expected])
    assert found[1]["tokens"][0]["piece"] == expected[1].tokens[0].piece
    stdin = io.TextIOWrapper(io.BytesIO("\n\n".join(texts).encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    assert main(["predict", str(tiny_run), "--score"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown[::2]] == [f"{one.score:.3f}" for one in expected]
    assert shown[0].endswith(f"{expected[0].score_per_token:.3f} per token  The old ferry left.")
    assert f"{expected[1].tokens[0].piece} " in shown[3]
