"""`albert-keras data check --task` as a user runs it."""

import json
import re

import pytest

from albert_keras.cli import main

TEXT = "The old ferry left the harbour"


@pytest.fixture
def mail(tmp_path):
    """Returns a command that checks a table with faults."""
    labels = ["ham", "spam", "Spam"]
    rows = [f"{TEXT} {n}\t{labels[n % 3]}" for n in range(60)]
    rows += [f"{TEXT} 0\tspam", f"{TEXT.upper()} 1\tspam", f"{'Ж ' * 60}日\tham"]
    (tmp_path / "mail.tsv").write_text("\n".join(["body\tfolder", *rows]), encoding="utf-8")
    words = ["--train", str(tmp_path / "mail.tsv"), "--text", "body", "--label", "folder"]
    return ["data", "check", "--task", "classification", *words]


def test_a_table_is_reported_with_its_faults(mail, tiny_vocabulary, capsys):
    command = [*mail, "--tokenizer", str(tiny_vocabulary.path), "--max-seq-length", "16"]
    assert main([*command, "--dev", mail[5]]) == 0
    shown = capsys.readouterr().out
    first, train, *rest = shown.splitlines()
    assert first == "classification: rows of at most 16 tokens, scored by accuracy"
    assert train == "train: 63 examples"
    assert "  labels             spam 22 (34.9 %), ham 21 (33.3 %), Spam 20 (31.7 %)" in rest
    assert "⚠ repeated           3.2 % of the examples (2) equal an earlier one" in shown
    assert "⚠ contradictory      examples that occur with different labels: 1" in shown
    assert f"`ham` (1), `spam` (1): {TEXT} 0" in shown
    assert re.search(r"⚠ truncated .*% of the examples are truncated", shown)
    assert "⚠ in training        63 of the 63 examples are also training examples" in shown
    assert re.fullmatch(r"\d+ warnings", rest[-1])


def test_without_a_tokenizer_the_report_says_what_is_missing(mail, capsys):
    with open(mail[5], "a", encoding="utf-8") as file:
        file.write(f"\n\tham\n{TEXT}\n")
    assert main([*mail, "--skip-bad-rows"]) == 0
    shown = capsys.readouterr().out
    assert "⚠ skipped rows       2; --json lists all of them" in shown
    assert "give --tokenizer for lengths in tokens" in shown and "truncated" not in shown
    assert main([*mail, "--skip-bad-rows", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    train, dev = report["splits"]["train"], report["splits"]["dev"]
    assert train["examples"] + dev["examples"] == 63
    names = [finding["name"] for finding in train["findings"]]
    assert names == ["labels", "repeated", "contradictory"]
    assert [row["line"] for row in report["skipped_rows"]] == [65, 66]
    assert report["skipped_rows"][1]["raw"] == TEXT
    assert "skipped rows: 2 rows cannot be used" in report["warnings"]
    assert any(warning.startswith("train: contradictory: ") for warning in report["warnings"])


def test_numbers_as_tags_are_named_by_a_setting(tmp_path, capsys):
    rows = [{"tokens": ["Anna", f"left{n}"], "ner_tags": [1, 0]} for n in range(8)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    command = ["data", "check", "--task", "tagging", "--train", str(tmp_path / "a.jsonl")]
    command += ["--text", "tokens", "--label", "ner_tags"]
    assert main(command) == 2
    advice = "`task.labels=[O, B-PER, I-PER]`"
    assert advice in capsys.readouterr().err
    assert main([*command, "--set", "task.labels=[O, B-PER]"]) == 0
    assert re.search(r"labels +O \d \(50.0 %\), B-PER \d", capsys.readouterr().out)
    assert main([*command, "--set", "training.steps=3"]) == 2
    assert "`--set` must have settings of the task" in capsys.readouterr().err
