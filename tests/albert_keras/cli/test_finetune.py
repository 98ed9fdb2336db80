"""`albert-keras finetune`, `evaluate` and `predict` on a table as spreadsheets write it."""

import contextlib
import csv
import io
import json
import re
from types import SimpleNamespace

import pytest

from albert_keras.cli import main
from albert_keras.cli.finetune import question_of
from albert_keras.config import AlbertConfig
from albert_keras.tasks.finetuned import open_finetuned
from albert_keras.tasks.results import read_results, verdict_of
from albert_keras.tasks.task_config import TaskConfig


@pytest.fixture(scope="module")
def place(tiny_corpus, tmp_path_factory):
    """Returns a folder with a table of remarks that may have two labels."""
    folder = tmp_path_factory.mktemp("tables")
    texts = [text.replace('"', "'") for text in tiny_corpus]
    rows = [f'"{text}";{number % 2};{number % 3 % 2}' for number, text in enumerate(texts)]
    rows[3:3] = ["no label;;", "too few"]
    table = "\r\n".join(["Bemerkung;toxic;insult", *rows[:40]]) + "\r\n"
    (folder / "remarks.csv").write_bytes(table.encode())
    return folder


@pytest.fixture(scope="module")
def command(place, tiny_tokenizer):
    """Returns the words of a command that makes one step."""
    sizes = {"embedding_size": 16, "hidden_size": 16, "intermediate_size": 32}
    sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 32}
    AlbertConfig(vocab_size=tiny_tokenizer.vocab_size, **sizes).save(place / "shape.json")
    tiny_tokenizer.save(place / "tokenizer")
    words = ["finetune", "--task", "classification", "--train", f"{place}/remarks.csv"]
    words += ["--text", "Bemerkung", "--label", "toxic", "--label", "insult", "--skip-bad-rows"]
    words += ["--from", "random", "--albert-config", f"{place}/shape.json"]
    words += ["--tokenizer", f"{place}/tokenizer", "--max-seq-length", "24", "--steps", "1"]
    return [*words, "--batch-size", "4", "--precision", "float32"]


@pytest.fixture(scope="module")
def tuned(place, command):
    """Returns the folder of a fine-tuning made by command, and what it printed."""
    out, log = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(log):
        assert main([*command, "--out", f"{place}/tuned"]) == 0
    return SimpleNamespace(path=place / "tuned", out=out.getvalue(), log=log.getvalue())


def test_the_last_lines_say_what_came_out_and_how_to_go_on(tuned):
    path = tuned.path
    first, _, model, *_, files, results, following = tuned.out.splitlines()
    assert re.fullmatch(r"classification, dev: \d examples", first)
    assert re.fullmatch(r" *this model, step 1 of 1(, collapsed)? +0\.\d{3} +\[.*\]", model)
    assert "exact_match" in tuned.out and files.startswith(f"errors: {path}/errors.tsv")
    assert results == (
        f"all results: {path}/results.json   page: albert-keras runs report {path}   "
        f"live: tensorboard --logdir {path}"
    )
    verdict = verdict_of(read_results(path))
    is_lost = verdict.is_better is False
    helps = "what helps is in docs/answers.md, “My model lost to the bag of words”"
    assert following == f"next: {helps if is_lost else f'albert-keras predict {path} TEXT'}"
    named = re.findall(rf"{path}\S*\.\w+", f"{files} {results}")
    assert len(named) >= 2 and all((path / name).is_file() for name in named)


def test_labels_are_shown_with_their_counts_before_the_training(tuned):
    before = tuned.log.split("step 1/1")[0]
    assert "train: labels: toxic 17 (48.6 %), insult 12 (34.3 %)\n" in before


def test_skipped_rows_are_listed_and_the_rest_is_learned(place, tuned):
    table, listed = f"{place}/remarks.csv", tuned.path / "skipped-rows.csv"
    assert "skipped 2 of 40 rows" in tuned.log and str(listed) in tuned.log
    with open(listed, newline="") as file:
        header, empty, short = csv.reader(file)
    assert header == ["file", "line", "reason", "raw"]
    assert (empty[0], empty[1], empty[3]) == (table, "5", "no label;;")
    assert short == [table, "6", "must have 3 columns, like the first row. It has 1.", "too few"]
    task = json.loads((tuned.path / "seed-12345" / "run.json").read_text())["config"]["task"]
    assert task["label"] == task["labels"] == ["toxic", "insult"] and task["skip_bad_rows"]
    assert task["encoding"] is None


def test_other_tables_are_evaluated_and_answered(tuned, tmp_path, capsys):
    table = "Bemerkung|toxic|insult\nGrüße|0|1\nDu, Tor|1|1\nHo|0\n"
    (tmp_path / "new.csv").write_bytes(table.encode("cp850"))
    words = ["--encoding", "cp850", "--skip-bad-rows"]
    command = ["evaluate", "--run", str(tuned.path), "--data", f"{tmp_path}/new.csv", *words]
    assert main([*command, "--out", f"{tmp_path}/scores", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert list(scores) == ["micro_f1", "macro_f1", "exact_match", "f1_toxic", "f1_insult"]
    assert "Ho|0" in (tmp_path / "scores" / "skipped-rows.csv").read_text()
    predict = ["predict", str(tuned.path), "--file", f"{tmp_path}/new.csv", *words]
    assert main([*predict, "--out", f"{tmp_path}/answers.jsonl"]) == 0
    assert "Ho|0" in (tmp_path / "answers.jsonl.skipped-rows.csv").read_text()
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [answer["Bemerkung"] for answer in answers] == ["Grüße", "Du, Tor"]
    thresholds = open_finetuned(tuned.path).thresholds
    for answer in answers:
        given = answer["probabilities"]
        assert list(given) == ["toxic", "insult"]
        assert answer["labels"] == [name for name in given if given[name] >= thresholds[name]]


def test_a_run_cannot_contain_a_run_of_another_kind(tuned, command, tiny_records, tiny_run, capfd):
    run = str(tuned.path / "seed-12345")
    before = sorted(tuned.path.parent.rglob("*"))
    assert main(["pretrain", "--data", str(tiny_records), "--out", run]) == 2
    assert "contains a finetuning run, not a pretraining run" in capfd.readouterr().err
    for out in (run, str(tiny_run)):
        assert main([*command, "--out", out]) == 2
        assert f"`{out}` is not empty, and nothing is ever overwritten" in capfd.readouterr().err
    assert sorted(tuned.path.parent.rglob("*")) == before


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("sst-2", "TEXT"),
        ("mrpc", "TEXT --pair TEXT"),
        ("squad2", "TEXT --question TEXT"),
        ("race", "TEXT --question TEXT --option TEXT --option TEXT"),
        ("tagging", "TEXT"),
    ],
)
def test_the_next_command_has_the_inputs_of_the_task(name, arguments):
    assert question_of(TaskConfig(name=name)) == arguments
