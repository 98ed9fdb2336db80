"""`albert-keras data check` as a user runs it."""

import io
import json
import sys

import pytest

from albert_keras.cli import main

LINE = "The old ferry left the harbour before sunrise and nobody wondered why."


@pytest.fixture
def corpus(tmp_path, tiny_corpus):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for begin in range(0, 348, 12):
        (folder / f"{begin}.txt").write_text(" ".join(tiny_corpus[begin : begin + 12]))
    return folder


@pytest.fixture
def tokenizer(tiny_vocabulary):
    return ["--tokenizer", str(tiny_vocabulary.path), "--max-seq-length", "64"]


def line_of(name, shown):
    """Returns the mark and the text of the line about something."""
    (line,) = (line for line in shown.splitlines() if line[2:].startswith(name))
    return line[0], line[2 + len(name) :].strip()


def write_documents(path, texts):
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))


def test_a_good_corpus_is_reported_on_one_screen(corpus, tokenizer, capsys):
    assert main(["data", "check", str(corpus), *tokenizer]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("29 files, ") and shown.err == ""
    assert len(shown.out.splitlines()) <= 25
    for name in ("files", "repeated", "one sentence only", "truncated", "letters"):
        assert line_of(name, shown.out)[0] == "✔"
    assert line_of("build", shown.out)[1].startswith("about ")
    assert shown.out.rstrip().splitlines()[-2].endswith(" of the text")


def test_warnings_leave_the_exit_code_alone(tmp_path, tokenizer, capsys):
    lone = [f"{number} {LINE}" for number in range(4)]
    write_documents(tmp_path / "x.jsonl", [*lone, lone[0], "日 本 [MASK] 語. " + LINE * 9])
    arguments = [str(tmp_path), *tokenizer[:2], "--max-seq-length", "32", "--splitter", "line"]
    assert main(["data", "check", *arguments]) == 0
    shown = capsys.readouterr().out
    assert line_of("repeated", shown)[1].startswith("16.7 % of the documents")
    assert line_of("one sentence only", shown)[1].startswith("100.0 % of the documents")
    assert line_of("truncated", shown)[1].startswith("100.0 % of the sentences")
    assert '"日" 1' in line_of("unknown tokens", shown)[1]
    for name in ("repeated", "one sentence only", "truncated", "unknown tokens"):
        assert line_of(name, shown)[0] == "⚠"


def test_letters_of_another_script_are_a_warning(tmp_path, capsys):
    (tmp_path / "x.txt").write_text("天下大势，分久必合。合久必分。", encoding="utf-8")
    for language, mark in (("en", "⚠"), ("zh", "✔")):
        assert main(["data", "check", str(tmp_path), "--language", language]) == 0
        assert line_of("letters", capsys.readouterr().out)[0] == mark


def test_refused_files_are_counted_after_the_whole_report_with_exit_code_2(
    corpus, tokenizer, capsys
):
    for number in range(12):
        (corpus / f"bad {number}.txt").write_bytes("Grüße.".encode("latin-1"))
    assert main(["data", "check", str(corpus), *tokenizer]) == 2
    shown = capsys.readouterr()
    assert line_of("files", shown.out) == ("⚠", "12 files cannot be read, see below")
    assert "about" in line_of("build", shown.out)[1]
    assert "A build would refuse 12 of 41 files" in shown.err
    assert shown.err.count("If the file is in Latin-1") == 10
    assert "... and 2 more" in shown.err


def test_json_has_the_numbers_by_name_and_the_warnings(corpus, tokenizer, capsys):
    (corpus / "bad.txt").write_bytes("Grüße.".encode("latin-1"))
    assert main(["data", "check", str(corpus), *tokenizer, "--copies", "2", "--json"]) == 2
    result = json.loads(capsys.readouterr().out)
    assert result["counts"]["documents"] == 29
    assert result["problems"][0]["file"] == str(corpus / "bad.txt")
    assert result["estimate"]["records"] > 29 and result["estimate"]["kept_text"] > 0.98
    assert any(warning.startswith("files") for warning in result["warnings"])


def test_a_sample_is_mentioned(corpus, capsys):
    assert main(["data", "check", str(corpus), "--sample-mb", "0.005"]) == 0
    assert "; read a sample of " in capsys.readouterr().out.splitlines()[0]


def test_files_without_text_markup_and_leaks_are_named(corpus, tmp_path, capsys):
    (corpus / "empty.txt").write_text("")
    (corpus / "page.txt").write_text("\n\n".join(["PageV01P084", "### |", "~~ a line ~~"]))
    (tmp_path / "dev.txt").write_text((corpus / "12.txt").read_text())
    assert main(["data", "check", str(corpus), "--heldout", str(tmp_path / "dev.txt")]) == 0
    shown = capsys.readouterr().out
    assert line_of("files", shown)[1].endswith(f"1 without text: {corpus / 'empty.txt'}")
    assert "page.txt: PageV01P084; page.txt: ### |" in line_of("markup", shown)[1]
    mark, leak = line_of("near-duplicates", shown)
    assert mark == "⚠" and leak.startswith("dev.txt (held out): 100.0 % of its runs of 8 words")
    assert "held-out text must not be in the corpus" in leak


def test_an_output_that_is_not_utf8_gets_escapes(tmp_path, tokenizer, monkeypatch):
    (tmp_path / "x.txt").write_text(f"{LINE} 日. {LINE} {LINE}", encoding="utf-8")
    output = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", output)
    assert main(["data", "check", str(tmp_path), *tokenizer]) == 0
    assert '"\\u65e5" 1' in output.buffer.getvalue().decode("latin-1")
