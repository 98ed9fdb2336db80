"""`albert-keras predict` with fine-tuned models: arguments, stdin, files, and mistakes."""

import csv
import io
import json
import re
import sys
from types import SimpleNamespace

import pytest

from albert_keras.cli import main
from albert_keras.cli.answer_lines import describe_answer
from albert_keras.config import AlbertConfig
from albert_keras.tasks.classification.regression import ScoreAnswer
from albert_keras.tasks.classification.task import ClassAnswer
from albert_keras.tasks.examples import QuestionExample, TaggedExample, TextExample
from albert_keras.tasks.spans.task import SpanAnswer
from albert_keras.tasks.tagging.task import TagAnswer


@pytest.fixture(scope="module")
def tuned(tiny_corpus, tiny_tokenizer, tmp_path_factory):
    """Returns the folder of a fine-tuning on pairs, one step of it."""
    from albert_keras.tasks.finetune import finetune
    from albert_keras.tasks.finetune_config import FinetuneConfig

    folder = tmp_path_factory.mktemp("asked")
    rows = [
        f"{first}\t{second}\t{'yes' if number % 2 else 'no'}"
        for number, (first, second) in enumerate(
            zip(tiny_corpus[:30], tiny_corpus[30:60], strict=True)
        )
    ]
    (folder / "train.tsv").write_text("\n".join(["one\tother\tsame", *rows]) + "\n")
    shape = AlbertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    task = {"name": "pair", "train": str(folder / "train.tsv"), "max_seq_length": 24}
    config = FinetuneConfig(
        task=task | {"text": "one", "pair": "other", "label": "same"},
        training={"steps": 1, "batch_size": 4, "precision": "float32", "peak_tflops": 1.0},
    )
    out = folder / "out"
    finetune("random", out, config, albert_config=shape, tokenizer=tiny_tokenizer)
    return out


@pytest.fixture
def ask(tuned, monkeypatch, capsys):
    """Returns a function that asks by command and returns what is printed."""

    def ask(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        assert main(["predict", str(tuned), *map(str, words)]) == 0
        return capsys.readouterr().out

    return ask


def test_a_pair_is_answered_in_a_line(ask):
    shown = ask("Rain.", "Snow.", "--pair", "Wind.").splitlines()
    assert len(shown) == 2
    assert re.fullmatch(r"(yes|no)  \d\d\.\d %  Rain\. \| Wind\.", shown[0])
    assert shown[1].endswith("  Snow. | Wind.")


def test_lines_of_stdin_are_texts_or_objects(ask):
    lines = b'\xef\xbb\xbfRain.\r\n\n{"text": "Rain.", "pair": "Fog.", "id": "k7"}\n{"text": "A"}\n'
    answers = [
        json.loads(line) for line in ask("--pair", "Wind.", "--json", stdin=lines).splitlines()
    ]
    assert [answer["id"] for answer in answers] == ["0", "k7", "2"]
    for answer, pair in zip(answers, ("Wind.", "Fog."), strict=False):
        (alone,) = json.loads(ask("Rain.", "--pair", pair, "--json"))
        assert answer["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-6)


def test_a_file_is_answered_and_written(ask, tmp_path):
    (tmp_path / "new.tsv").write_text("body\treply\nRain.\tWind.\n")
    columns = ["--text-column", "body", "--pair-column", "reply"]
    shown = ask("--file", tmp_path / "new.tsv", *columns)
    assert shown == ask("Rain.", "--pair", "Wind.")
    shown = ask("--file", tmp_path / "new.tsv", *columns, "--out", tmp_path / "out")
    assert shown == f"1 answer: {tmp_path}/out/predictions-new.jsonl\n"


@pytest.fixture
def table(tmp_path):
    """Returns a table that Excel might have written, with a column that answers have as well."""
    path = tmp_path / "new.csv"
    long = "Rain, and rain. " * 20
    rows = ["no;body;reply;label", f"7;{long};Wind.;old", "8;Snow.;;older"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-16")
    return path


COLUMNS = ["--text-column", "body", "--pair-column", "reply"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_table_of_answers_keeps_the_columns_of_the_input(ask, table, tmp_path, ending):
    out = tmp_path / f"answers.{ending}"
    shown = ask("--file", table, *COLUMNS, "--out", out)
    assert shown == f"2 answers: {out}\n"
    if ending == "csv":
        rows = list(csv.DictReader(out.read_text().splitlines()))
    else:
        rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["no"] for row in rows] == ["7", "8"] and rows[1]["reply"] == ""
    assert [row["label"] for row in rows] == ["old", "older"]
    assert {row["predicted_label"] for row in rows} <= {"yes", "no"}
    assert int(rows[0]["dropped_tokens"]) > 0 and int(rows[1]["dropped_tokens"]) == 0
    lines = ask("--file", table, *COLUMNS, "--json").splitlines()
    if ending == "jsonl":
        assert [json.loads(line) for line in lines] == rows


def test_an_existing_table_is_not_overwritten_unasked(ask, tuned, table, tmp_path, capsys):
    out = tmp_path / "answers.csv"
    out.write_text("precious")
    words = ["predict", str(tuned), "--file", str(table), *COLUMNS, "--out", str(out)]
    assert main(words) == 2
    assert "must be a file that does not exist" in capsys.readouterr().err
    assert out.read_text() == "precious"
    ask(*words[2:], "--overwrite")
    assert out.read_text().startswith("no,body,reply,label,predicted_label,probability")
    assert main([*words[:-1], str(table), "--overwrite"]) == 2
    assert "must not be the file of the examples" in capsys.readouterr().err


def test_truncated_inputs_are_counted_and_marked(ask, tuned, monkeypatch, capsys):
    text = "Rain, and rain. " * 20
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"{text}\nRain.\n".encode())))
    assert main(["predict", str(tuned), "--pair", "Wind."]) == 0
    shown = capsys.readouterr()
    long, short = shown.out.splitlines()
    number = re.search(r"\(truncated: (\d+) tokens not read\)$", long)[1]
    assert "truncated" not in short
    [line] = [line for line in shown.err.splitlines() if "Truncated" in line]
    assert line.startswith("Truncated inputs: 1 of 2. ")
    [answer, _] = json.loads(ask(text, "Rain.", "--pair", "Wind.", "--json"))
    assert answer["dropped_tokens"] == int(number)


def test_a_line_is_answered_before_the_next_one_arrives(ask, tuned, monkeypatch):
    arrived = []

    class Arriving:
        def read1(self, size):
            arrived.append(len(printed))
            return b"Rain.\n" if len(arrived) < 4 else b""

    printed = []

    def show(line, flush=False):
        printed.append(line)

    monkeypatch.setattr("albert_keras.cli.output.print", show, raising=False)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Arriving(), isatty=lambda: False))
    assert main(["predict", str(tuned), "--pair", "Wind.", "--json"]) == 0
    assert arrived == [0, 1, 2, 3]
    assert [json.loads(line)["id"] for line in printed] == ["0", "1", "2"]


def test_a_split_is_answered(ask):
    assert ask("--split", "dev").count("|") > 0


SHOWN = [
    (TextExample("0", "a\nb", None), ClassAnswer("0", "no", 0.75, {}), "no  75.0 %  a b"),
    (TextExample("0", "a", "b"), ScoreAnswer("0", 2.5), "  2.500  a | b"),
    (
        TaggedExample("0", ("Ada", "slept")),
        TagAnswer("0", ("Ada", "slept"), ("B-PER", "O"), (0.9, 0.9)),
        "Ada/B-PER slept",
    ),
    (
        QuestionExample("0", "Who?", "It slept."),
        SpanAnswer("0", "", 0.25, None, None, 1.0, []),
        "(no answer)  25.0 %  Who?",
    ),
]


@pytest.mark.parametrize("example, answer, line", SHOWN)
def test_an_answer_is_a_line(example, answer, line):
    assert describe_answer(example, answer) == line
