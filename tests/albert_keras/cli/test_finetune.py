"""`albert-keras finetune` and `evaluate` as a user runs them, and their mistakes."""

import json
import os
import re

import pytest

from albert_keras.cli import main
from albert_keras.config import AlbertConfig

FAST = ["--batch-size", "4", "--precision", "float32", "--set", "training.peak_tflops=1"]


@pytest.fixture(scope="module")
def place(tiny_corpus, tiny_vocabulary, tmp_path_factory):
    """Returns a folder with a table of mails and the shape of a model."""
    folder = tmp_path_factory.mktemp("place")
    rows = [f"{text}\t{'spam' if number % 2 else 'ham'}" for number, text in enumerate(tiny_corpus)]
    (folder / "mail.tsv").write_text("\n".join(["body\tfolder", *rows[:40]]) + "\n")
    AlbertConfig(
        vocab_size=tiny_vocabulary.size,
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    ).save(folder / "shape.json")
    return folder


@pytest.fixture(scope="module")
def begin(place, tiny_vocabulary):
    """Returns the options that name the table and what to begin from."""
    table = ["--task", "classification", "--train", f"{place}/mail.tsv", "--text", "body"]
    table += ["--label", "folder", "--max-seq-length", "24"]
    origin = ["--from", "random", "--albert-config", f"{place}/shape.json"]
    return {"table": table, "origin": [*origin, "--tokenizer", str(tiny_vocabulary.path)]}


@pytest.fixture(scope="module")
def tuned(place, begin):
    """Returns a fine-tuning of one step, made by command."""
    out = place / "tuned"
    command = ["finetune", *begin["table"], *begin["origin"], *FAST, "--out", str(out)]
    assert main([*command, "--steps", "1"]) == 0
    return out


def test_the_last_lines_say_what_came_out_and_how_to_go_on(tuned, begin, capsys):
    command = ["finetune", *begin["table"], *begin["origin"], *FAST, "--steps", "1"]
    assert main([*command, "--out", str(tuned)]) == 0
    shown = capsys.readouterr()
    first, baseline, *_, files, results, following = shown.out.splitlines()
    assert re.fullmatch(r"accuracy 0\.\d{3} \[.*\] on \d examples \(best at step 1 of 1\)", first)
    assert "majority class" in baseline
    assert files == f"errors: {tuned}/errors.tsv   confusions: {tuned}/confusion.png"
    assert results == (
        f"all results: {tuned}/results.json   page: albert-keras runs report {tuned}   "
        f"live: tensorboard --logdir {tuned}"
    )
    assert following == f"next: albert-keras predict {tuned} TEXT"
    assert "there is nothing left to train" in shown.err
    paths = re.findall(rf"{tuned}\S*\.\w+", f"{files} {results}")
    assert len(paths) == 3 and all(map(os.path.isfile, paths))


@pytest.mark.slow
def test_the_result_is_json_on_request(tuned, begin, capsys):
    command = ["finetune", *begin["table"], *begin["origin"], *FAST, "--steps", "1", "--json"]
    assert main([*command, "--out", str(tuned)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["task"] == "classification" and len(result["seeds"]) == 1
    assert result == json.loads((tuned / "results.json").read_text())


def test_a_fine_tuning_is_scored_by_command(tuned, place, tmp_path, capsys):
    command = ["evaluate", "--run", str(tuned)]
    assert main([*command, "--data", f"{place}/mail.tsv", "--out", f"{tmp_path}/scores"]) == 0
    first, others, guess, words, *_, files, answers = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"accuracy 0\.\d{3} \[.*\] on 40 examples of mail\.tsv", first)
    assert re.fullmatch(r"  macro_f1 0\.\d{3}  f1 \(of `spam`\) [01]\.\d{3}", others)
    assert guess == "  always the same answer: accuracy 0.500"
    assert re.fullmatch(r"  bag of words: accuracy [01]\.\d{3}", words)
    assert files.startswith(f"errors: {tmp_path}/scores/errors.tsv   confusions: ")
    assert answers == f"answers: {tmp_path}/scores/predictions-mail.tsv.jsonl"


def shown_mistake(command, folder, capfd):
    """Gives a command that must fail, short and without a trace; returns what it said."""
    before = sorted(folder.rglob("*"))
    capfd.readouterr()
    assert main(command) == 2
    shown = capfd.readouterr().err
    assert "Traceback" not in shown and sorted(folder.rglob("*")) == before
    errors = shown[shown.index("rror") :] if "rror" in shown else shown
    lines = [line for line in errors.strip().splitlines() if "see docs/errors.md" not in line]
    assert len(lines) <= 6
    return errors


def test_a_run_cannot_contain_a_run_of_another_kind(tuned, tiny_records, tiny_run, begin, capfd):
    folder, run = tuned.parent, str(tuned / "seed-12345")
    shown = shown_mistake(["pretrain", "--data", str(tiny_records), "--out", run], folder, capfd)
    assert "contains a finetuning run, not a pretraining run" in shown
    command = ["finetune", *begin["table"], *begin["origin"]]
    for out in (run, str(tiny_run)):
        shown = shown_mistake([*command, "--out", out], folder, capfd)
        assert f"`{out}` is not empty, and nothing is ever overwritten" in shown
