"""`albert-keras vocab` as a user runs it: progress, and what it prints."""

import shlex

from albert_keras.cli import main


def test_the_progress_and_the_characters_without_a_piece_are_reported(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("data_pipeline.progress._SECONDS_BETWEEN_LINES", 0)
    (tmp_path / "corpus.txt").write_text("many plain words here " * 5000 + "龘 鱻 鱻")
    command = ["vocab", "--corpus", f"{tmp_path}/corpus.txt", "--size", "85"]
    assert main([*command, "--out", f"{tmp_path}/out"]) == 0
    shown, log = capsys.readouterr()
    assert shown.splitlines()[1] == (
        "coverage: 99.9966 % of 90,003 characters; unknown: '鱻' 2, '龘' 1"
    )
    pieces = (tmp_path / "out" / "tokenizer.vocab").read_text(encoding="utf-8")
    assert "\n%\t" in pieces and "鱻" not in pieces
    assert "reading: 0.1 of 0.1 MB, ETA " in log
    assert "training on 0.1 million characters, about 2" in log


def test_the_next_command_builds_records_of_the_same_text_in_its_language(tmp_path, capsys):
    corpus = tmp_path / "كتب كثيرة.txt"
    corpus.write_text("جلس الرجل العجوز قرب النافذة ونظر إلى البحر. " * 400, encoding="utf-8")
    out = str(tmp_path / "out")
    command = ["vocab", "--corpus", str(corpus), "--size", "100", "--out", out]
    assert main([*command, "--language", "ar"]) == 0
    _, command = capsys.readouterr().out.strip().rsplit("next: albert-keras ", 1)
    words = shlex.split(command)
    words[words.index("--out") + 1] = f"{tmp_path}/records"
    assert main([*words, "--max-seq-length", "16"]) == 0
