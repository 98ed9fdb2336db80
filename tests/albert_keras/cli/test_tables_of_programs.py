"""Tables as spreadsheets write them, with several labels: from `finetune` to `predict`."""

import csv
import json

import pytest

from albert_keras.cli import main
from albert_keras.config import AlbertConfig

FAST = ["--batch-size", "4", "--precision", "float32", "--set", "training.peak_tflops=1"]
COLUMNS = ["--label", "toxic", "--label", "insult"]


@pytest.fixture(scope="module")
def place(tiny_corpus, tiny_tokenizer, tmp_path_factory):
    """Returns a folder with a table of remarks, a tokenizer and the shape of a model."""
    folder = tmp_path_factory.mktemp("tables")
    texts = [text.replace('"', "'") for text in tiny_corpus]
    rows = [f'"{text}";{number % 2};{number % 3 % 2}' for number, text in enumerate(texts)]
    rows[3:3] = ["no label;;", "too few"]
    table = "\r\n".join(["Bemerkung;toxic;insult", *rows[:40]]) + "\r\n"
    (folder / "remarks.csv").write_bytes(table.encode("utf-16"))
    AlbertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    ).save(folder / "shape.json")
    tiny_tokenizer.save(folder / "tokenizer")
    return folder


def begin(place, out="tuned"):
    words = ["finetune", "--task", "classification", "--text", "Bemerkung", *COLUMNS, *FAST]
    words += ["--train", f"{place}/remarks.csv", "--from", "random", "--steps", "1"]
    words += ["--albert-config", f"{place}/shape.json", "--tokenizer", f"{place}/tokenizer"]
    return [*words, "--max-seq-length", "24", "--out", f"{place}/{out}"]


@pytest.fixture(scope="module")
def tuned(place):
    """Returns a fine-tuning of one step, made by command."""
    assert main([*begin(place), "--skip-bad-rows"]) == 0
    return place / "tuned"


def test_skipped_rows_are_listed_and_the_rest_is_learned(place, tuned, capsys):
    assert main([*begin(place), "--skip-bad-rows"]) == 0
    shown = capsys.readouterr()
    assert "skipped 2 of 40 rows" in shown.err and f"{tuned}/skipped-rows.csv" in shown.err
    assert shown.out.startswith("micro_f1 ") and "exact_match" in shown.out
    with open(tuned / "skipped-rows.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["file", "line", "reason", "raw"]
    assert [row[::2] for row in rows] == [
        [f"{place}/remarks.csv", rows[0][2]],
        [f"{place}/remarks.csv", "must have 3 columns, like the first row. It has 1."],
    ]
    assert [row[1::2] for row in rows] == [["5", "no label;;"], ["6", "too few"]]
    task = json.loads((tuned / "seed-12345" / "run.json").read_text())["config"]["task"]
    assert task["label"] == task["labels"] == ["toxic", "insult"] and task["skip_bad_rows"]
    assert task["encoding"] is None


def test_other_tables_are_evaluated_and_answered(place, tuned, tmp_path, capsys):
    table = "Bemerkung|toxic|insult\nGr\u00fc\u00dfe|0|1\nDu, Tor|1|1\nHo|0\n"
    (tmp_path / "new.csv").write_bytes(table.encode("cp850"))
    words = ["--encoding", "cp850", "--skip-bad-rows"]
    command = ["evaluate", "--run", str(tuned), "--data", f"{tmp_path}/new.csv", *words]
    assert main([*command, "--out", f"{tmp_path}/scores", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert list(scores) == ["micro_f1", "macro_f1", "exact_match", "f1_toxic", "f1_insult"]
    assert "Ho|0" in (tmp_path / "scores" / "skipped-rows.csv").read_text()
    predict = ["predict", str(tuned), "--file", f"{tmp_path}/new.csv", *words]
    assert main([*predict, "--out", f"{tmp_path}/answers.csv"]) == 0
    capsys.readouterr()
    assert "Ho|0" in (tmp_path / "answers.csv.skipped-rows.csv").read_text()
    assert main([*predict, "--json"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["Bemerkung"] for answer in answers] == ["Gr\u00fc\u00dfe", "Du, Tor"]
    thresholds = json.loads(next(tuned.glob("seed-*/tuned.json")).read_text())
    for answer in answers:
        probabilities = answer["probabilities"]
        assert list(probabilities) == ["toxic", "insult"]
        given = [name for name, value in probabilities.items() if value >= thresholds[name]]
        assert answer["labels"] == given
