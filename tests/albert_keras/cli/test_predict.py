"""`albert-keras predict`: arguments, stdin, files and tables, by runs and by exports."""

import csv
import io
import json
import re
import shutil
import sys

import pytest

from albert_keras.cli import main
from albert_keras.serving.predictor import Candidate, FilledMask, SentenceOrder
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from tests.albert_keras.serving.small_exports import make_model, write_export, write_run
from tests.albert_keras.tasks.small_tasks import SETTINGS

PAIR = ["--pair", "Wind."]


@pytest.fixture(scope="module")
def places(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns the folders of a run that sorts pairs and of its export, with one version."""
    out = tmp_path_factory.mktemp("asked")
    rows = [
        f"{text},Yes.,{'no' if number % 2 else 'yes'}" for number, text in enumerate("abcdefgh")
    ]
    (out / "train.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    table = {"train": str(out / "train.csv"), "label": "label", "max_seq_length": 40}
    task = build_task(TaskConfig(**SETTINGS["classification"] | table))
    model = make_model(task, tiny_tokenizer)
    write_export(out / "books" / "2", task, model, tiny_tokenizer)
    return write_run(out / "run", task, model, tiny_tokenizer, tiny_corpus), out / "books"


@pytest.fixture
def ask(places, monkeypatch, capsys):
    """Returns a function that asks by command and returns what is printed."""

    def ask(*words, stdin=b"", of=places[0]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        assert main(["predict", str(of), *map(str, words)]) == 0
        return capsys.readouterr().out

    return ask


def test_lines_of_stdin_are_texts_or_objects_and_answered_alike_by_run_and_export(ask, places):
    lines = b'\xef\xbb\xbfRain.\r\n\n{"text": "Rain.", "pair": "Fog.", "id": "k7"}\n{"text": "A"}\n'
    answers, others = (
        [json.loads(line) for line in ask(*PAIR, "--json", stdin=lines, of=of).splitlines()]
        for of in places
    )
    assert [answer["id"] for answer in answers] == ["0", "k7", "2"]
    for answer, other in zip(answers, others, strict=True):
        assert list(answer) == list(other)
        assert answer["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)
    (alone,) = json.loads(ask("Rain.", *PAIR, "--json"))
    assert answers[0]["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-6)
    shown = ask("Rain.", "Snow.", *PAIR, of=places[1]).splitlines()
    assert re.fullmatch(r"(no|yes|maybe)  \d\d\.\d %  Rain\. \| Wind\.", shown[0])
    assert len(shown) == 2 and shown[1].endswith("  Snow. | Wind.")


def test_an_export_needs_neither_run_nor_training_file(ask, places, tmp_path):
    moved = shutil.copytree(places[1], tmp_path / "elsewhere")
    record = json.loads((moved / "2" / "export.json").read_text())
    record["task"]["config"]["train"] = "/nowhere/train.tsv"
    (moved / "2" / "export.json").write_text(json.dumps(record))
    assert ask("Rain.", *PAIR, of=moved) == ask("Rain.", *PAIR)


def test_a_pretrained_export_fills_masks_and_orders_sentences(tmp_path, monkeypatch, capsys):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "export.json").write_text('{"step": 1, "kind": "pretraining"}')
    asked = []

    class Export:
        def __init__(self, path):
            assert str(path) == str(tmp_path)

        def fill_mask(self, texts, top_k):
            asked.append((texts, top_k))
            return [FilledMask("a [MASK]", "a b", [[Candidate("b", 0.5)]], 2)]

        def sentence_order(self, first, second):
            asked.append((first, second))
            return [SentenceOrder("a", "b", 0.25, 0)]

    monkeypatch.setattr("albert_keras.serving.predictor.Predictor", Export)
    assert main(["fill-mask", str(tmp_path), "a [MASK]", "--top-k", "1"]) == 0
    assert capsys.readouterr().out == "a b  (truncated: 2 tokens not read)\n    b 50.0 %\n"
    assert main(["sentence-order", str(tmp_path), "a", "--then", "b"]) == 0
    assert capsys.readouterr().out == " 25.0 %  in this order: a\n"
    assert asked == [(["a [MASK]"], 1), (["a"], ["b"])]


@pytest.fixture
def table(tmp_path):
    """Returns a table that Excel might have written, with a column that answers have as well."""
    path = tmp_path / "new.csv"
    long = "Rain, and rain. " * 20
    rows = ["no;a;b;label", f"7;{long};Wind.;old", "8;Snow.;;older"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_table_of_answers_keeps_the_columns_of_the_input(ask, table, tmp_path):
    words = ["--file", table]
    found = {}
    for ending in ("csv", "jsonl"):
        out = tmp_path / f"answers.{ending}"
        assert ask(*words, "--out", out) == f"2 answers: {out}\n"
        found[ending] = out.read_text().splitlines()
    for rows in (list(csv.DictReader(found["csv"])), [*map(json.loads, found["jsonl"])]):
        assert [row["no"] for row in rows] == ["7", "8"] and rows[1]["b"] == ""
        assert [row["label"] for row in rows] == ["old", "older"]
        assert {row["predicted_label"] for row in rows} <= {"yes", "no", "maybe"}
        assert int(rows[0]["dropped_tokens"]) > 0 and int(rows[1]["dropped_tokens"]) == 0
    assert [*map(json.loads, ask(*words, "--json").splitlines())] == rows
    shown = ask(*words, "--out", tmp_path / "out")
    assert shown == f"2 answers: {tmp_path}/out/predictions-new.jsonl\n"


def test_an_existing_table_is_not_overwritten(places, table, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    out.write_text("precious")
    words = ["predict", str(places[0]), "--file", str(table), "--out", str(out)]
    assert main(words) == 2
    assert "must be a file that does not exist" in capsys.readouterr().err
    assert out.read_text() == "precious"


def test_truncated_inputs_are_counted_and_marked(places, monkeypatch, capsys):
    text = "Rain, and rain. " * 20
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{text}\nRain.\n".encode())))
    assert main(["predict", str(places[0]), *PAIR]) == 0
    shown = capsys.readouterr()
    long, short = shown.out.splitlines()
    assert re.search(r"\(truncated: \d+ tokens not read\)$", long) and "truncated" not in short
    [line] = [line for line in shown.err.splitlines() if "Truncated" in line]
    assert line.startswith("Truncated inputs: 1 of 2. ")


def test_a_repeated_id_is_named_with_its_input(places, monkeypatch, capsys):
    lines = b'{"text": "Rain.", "id": "a"}\n{"text": "Snow.", "id": "a"}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert main(["predict", str(places[0]), *PAIR]) == 2
    assert "Input 2 of 2 has the id of input 1, 'a'" in capsys.readouterr().err


def test_a_split_is_answered(ask):
    assert ask("--split", "dev").count("|") > 0
