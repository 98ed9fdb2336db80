"""`data check` of a corpus as a user gives it."""

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
def check(tiny_vocabulary, capsys):
    """Returns a function that checks a corpus and returns the exit code and what is printed."""

    def check(*words, tokenizer=("--tokenizer", tiny_vocabulary.path)):
        code = main(["data", "check", *map(str, words), *map(str, tokenizer)])
        return code, capsys.readouterr()

    return check


def text_of(name, shown):
    """Returns the text of the line about something."""
    (line,) = (line for line in shown.out.splitlines() if line[2:].startswith(name))
    return line[2 + len(name) :].strip()


def test_a_good_corpus_is_reported_on_one_screen(corpus, check):
    code, shown = check(corpus)
    assert code == 0 and shown.out.startswith("29 files, ") and shown.err == ""
    assert len(shown.out.splitlines()) <= 25
    assert "29 documents, 29 paragraphs, 348 sentences" in shown.out
    assert text_of("length of sentences", shown).endswith(" tokens")
    assert text_of("repeated", shown).startswith("0.0 % of the documents")
    assert "held-out" not in shown.out
    _, shown = check(corpus, tokenizer=())
    assert text_of("length of sentences", shown).endswith(" characters")


def test_what_is_found_leaves_the_exit_code_alone(tmp_path, check):
    lone = [f"{number} {LINE}" for number in range(4)]
    texts = [*lone, lone[0], "日 [MASK] 語. " + LINE * 90]
    (tmp_path / "x.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    code, shown = check(tmp_path, "--splitter", "line")
    assert code == 0
    assert text_of("repeated", shown).startswith("66.7 % of the documents")
    assert text_of("unknown tokens", shown) == "0.06 %"


def test_refused_files_are_counted_after_the_whole_report_with_exit_code_2(corpus, check):
    for number in range(12):
        (corpus / f"bad {number}.txt").write_bytes("Viele Grüße.".encode("latin-1"))
    code, shown = check(corpus)
    assert code == 2
    assert "A build would refuse this corpus (12 problems):" in shown.err
    assert shown.err.count("If the file is in another encoding, such as CP1252") == 10
    assert "... and 2 more" in shown.err
    code, shown = check(corpus, "--json")
    result = json.loads(shown.out)
    assert code == 2 and result["counts"]["documents"] == 29
    assert str(corpus / "bad 0.txt") in result["problems"][0]


def test_leaks_are_named(corpus, tmp_path, check):
    (tmp_path / "dev.txt").write_text((corpus / "12.txt").read_text())
    code, shown = check(corpus, "--heldout", tmp_path / "dev.txt", tokenizer=())
    assert code == 0
    assert text_of("held-out text", shown) == "100.0 % of its runs of 8 words are in the corpus"
    leak = text_of("near-duplicate", shown)
    assert leak == "dev.txt: 100.0 % of its runs of 8 words, most of them in 12.txt"


def test_an_output_that_is_not_utf8_gets_escapes(tmp_path, monkeypatch):
    words = " ".join(f"{LINE} {number:b}".translate({48: "a", 49: "b"}) for number in range(40))
    for name in ("x.txt", "日.txt"):
        (tmp_path / name).write_text(words)
    output = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", output)
    words = [str(tmp_path / "x.txt"), "--heldout", str(tmp_path / "日.txt")]
    assert main(["data", "check", *words]) == 0
    assert "\\u65e5.txt: 100.0 %" in output.buffer.getvalue().decode("latin-1")
