"""`albert-keras data check` of a corpus as a user runs it."""

import io
import json
import sys

import pytest

from albert_keras.cli import main
from albert_keras.cli.vocab import _build_command
from data_pipeline.tokenizers.vocabulary import TrainedVocabulary

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

    def check(*words, tokenizer=("--tokenizer", tiny_vocabulary.path, "--max-seq-length", "64")):
        code = main(["data", "check", *map(str, words), *map(str, tokenizer)])
        return code, capsys.readouterr()

    return check


def line_of(name, shown):
    """Returns the mark and the text of the line about something."""
    (line,) = (line for line in shown.out.splitlines() if line[2:].startswith(name))
    return line[0], line[2 + len(name) :].strip()


def test_a_good_corpus_is_reported_on_one_screen(corpus, check):
    code, shown = check(corpus)
    assert code == 0 and shown.out.startswith("29 files, ") and shown.err == ""
    assert len(shown.out.splitlines()) <= 25
    for name in ("files", "repeated", "one sentence only", "truncated", "letters"):
        assert line_of(name, shown)[0] == "✔"
    assert line_of("build", shown)[1].startswith("about ")
    assert shown.out.rstrip().splitlines()[-2].endswith(" of the text")
    _, shown = check(corpus, "--sample-mb", "0.005", tokenizer=())
    assert "; read a sample of " in shown.out.splitlines()[0]


def test_warnings_leave_the_exit_code_alone(tmp_path, check):
    lone = [f"{number} {LINE}" for number in range(4)]
    texts = [*lone, lone[0], "日 本 [MASK] 語. " + LINE * 9]
    (tmp_path / "x.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    code, shown = check(tmp_path, "--splitter", "line")
    assert code == 0
    assert line_of("repeated", shown)[1].startswith("66.7 % of the documents")
    only = line_of("one sentence only", shown)[1]
    assert only.startswith("100.0 % of the documents") and only.endswith("; 0 are empty")
    assert '"日" 1' in line_of("unknown tokens", shown)[1]
    for name in ("repeated", "one sentence only", "truncated", "unknown tokens"):
        assert line_of(name, shown)[0] == "⚠"


def test_letters_of_another_script_are_a_warning(tmp_path, check):
    (tmp_path / "x.txt").write_text("天下大势，分久必合。合久必分。", encoding="utf-8")
    for language, mark in (("en", "⚠"), ("zh", "✔")):
        code, shown = check(tmp_path, "--language", language, tokenizer=())
        assert code == 0 and line_of("letters", shown)[0] == mark


def test_the_language_is_detected_and_the_one_for_a_build_is_named(tmp_path, check):
    text = "Die Fähre verließ früh den Hafen. Über dem Fluß hörte man die Glocken; schön! " * 20
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    (tmp_path / "y.txt").write_bytes(text.encode("latin-1"))
    _, shown = check(tmp_path, tokenizer=())
    assert line_of("letters", shown) == (
        "✔",
        "Latin 100.0 %: `data build` requires --language de",
    )


UKRAINIAN = "Човни повернулися лише пізно ввечері, і ніхто не хотів говорити про погоду. " * 20


def test_languages_of_one_script_are_told_apart(tmp_path, check):
    (tmp_path / "x.txt").write_text(UKRAINIAN, encoding="utf-8")
    _, shown = check(tmp_path, tokenizer=())
    wanted = "Cyrillic 100.0 %: `data build` requires --language uk"
    assert line_of("letters", shown) == ("✔", wanted)
    _, shown = check(tmp_path, "--language", "ru", tokenizer=())
    assert line_of("letters", shown) == ("⚠", "Cyrillic 100.0 %: the text reads as `uk`")
    (tmp_path / "x.txt").write_bytes(UKRAINIAN.encode().decode("latin-1").encode())
    _, shown = check(tmp_path, tokenizer=())
    wanted = "Latin 92.5 %, Micro 7.5 %: more than half of the text is in no known language"
    assert line_of("letters", shown) == ("⚠", wanted)
    (tmp_path / "x.txt").write_bytes(UKRAINIAN.encode("cp1251"))
    _, shown = check(tmp_path, tokenizer=())
    assert "If the file is in CP1251, `iconv -f CP1251 -t UTF-8 " in shown.err


def test_marks_that_the_vocabulary_lacks_are_not_blamed_on_the_language(tmp_path, check):
    (tmp_path / "x.txt").write_text("“I don’t know.” They didn’t know—or care. " * 20)
    _, shown = check(tmp_path, tokenizer=("--tokenizer", "albert-mini-en"))
    mark, text = line_of("unknown tokens", shown)
    advice = 'Write \' for ’, " for “, " for ”, – for —: the vocabulary knows these'
    assert mark == "⚠" and text.endswith(f". {advice}")
    (tmp_path / "x.txt").write_text(UKRAINIAN + "“”", encoding="utf-8")
    _, shown = check(tmp_path, tokenizer=("--tokenizer", "albert-mini-en"))
    assert "of another language or domain: choose one" in line_of("unknown tokens", shown)[1]


def test_a_sentence_per_line_is_a_warning(tmp_path, check):
    (tmp_path / "x.txt").write_text("\n\n".join([f"{LINE}\nSo it left."] * 12))
    _, shown = check(tmp_path, tokenizer=())
    assert line_of("format", shown)[0] == "⚠" and "--format sentences" in shown.out
    _, shown = check(tmp_path, "--format", "sentences", tokenizer=())
    assert "\n⚠ format" not in shown.out and "12 documents" in shown.out


def test_refused_files_are_counted_after_the_whole_report_with_exit_code_2(corpus, check):
    for number in range(12):
        (corpus / f"bad {number}.txt").write_bytes(
            "Viele Grüße aus der schönen Stadt.".encode("latin-1")
        )
    code, shown = check(corpus)
    assert code == 2
    assert line_of("files", shown) == ("⚠", "12 files cannot be read, see below")
    assert "about" in line_of("build", shown)[1]
    assert "A build would refuse 12 of 41 files" in shown.err
    assert shown.err.count("If the file is in CP1252, `iconv -f CP1252") == 10
    assert "... and 2 more" in shown.err
    code, shown = check(corpus, "--copies", "2", "--json")
    result = json.loads(shown.out)
    assert code == 2 and result["counts"]["documents"] == 29
    assert result["problems"][0]["file"] == str(corpus / "bad 0.txt")
    assert result["estimate"]["records"] > 29 and result["estimate"]["kept_text"] > 0.98
    assert any(warning.startswith("files") for warning in result["warnings"])


def test_files_without_text_markup_and_leaks_are_named(corpus, tmp_path, check):
    (corpus / "empty.txt").write_text("")
    (corpus / "page.txt").write_text("\n\n".join(["PageV01P084", "### |", "~~ a line ~~"]))
    (tmp_path / "dev.txt").write_text((corpus / "12.txt").read_text())
    code, shown = check(corpus, "--heldout", tmp_path / "dev.txt", tokenizer=())
    assert code == 0
    assert line_of("files", shown)[1].endswith(f"1 without text: {corpus / 'empty.txt'}")
    assert (
        "9.4 % of the paragraphs (3): it is learned as if it were text; page.txt: `PageV01P084`"
        in line_of("markup", shown)[1]
    )
    leaks = [line for line in shown.out.splitlines() if "held-out text must not be" in line]
    mark, leak = line_of("near-duplicates", shown._replace(out=leaks[0]))
    assert mark == "⚠" and leak.startswith("dev.txt (held out): 100.0 % of its runs of 8 words")
    share = line_of("held-out text", shown._replace(out=shown.out.replace(leaks[0], "")))
    assert share == ("⚠", "100.0 % of its runs of 8 words are in the corpus")


def test_an_output_that_is_not_utf8_gets_escapes(tmp_path, tiny_vocabulary, monkeypatch):
    (tmp_path / "x.txt").write_text(f"{LINE} 日. {LINE} {LINE}", encoding="utf-8")
    output = io.TextIOWrapper(io.BytesIO(), "latin-1")
    monkeypatch.setattr(sys, "stdout", output)
    words = [str(tmp_path), "--tokenizer", str(tiny_vocabulary.path)]
    assert main(["data", "check", *words]) == 0
    assert '"\\u65e5" 1' in output.buffer.getvalue().decode("latin-1")


@pytest.mark.parametrize("code", ["uk", "fa", None])
def test_the_printed_next_step_names_a_language_that_is_certain(tmp_path, code):
    texts = {"uk": UKRAINIAN, "fa": "قایق‌ها دیروقت شب برگشتند و هیچ‌کس حرف نمی‌زد. ", None: "12 34. "}
    (tmp_path / "x.txt").write_text(texts[code] * 9, encoding="utf-8")
    vocabulary = TrainedVocabulary(tmp_path, 9, "")
    command = _build_command(vocabulary, [str(tmp_path / "x.txt")], "auto")
    assert (f" --language {code} " in command) == ("--language" in command) == (code is not None)
