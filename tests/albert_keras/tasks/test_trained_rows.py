"""Examples that were trained on are never scored as held-out ones in silence."""

import json
import logging
import shutil
from pathlib import Path

import pytest

from albert_keras.cli import main
from albert_keras.cli.evaluate import describe_task
from albert_keras.serving.export.source import open_source
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.result_table import lines
from albert_keras.tasks.results import read_results
from albert_keras.tasks.row_digests import digest_rows
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.trained_rows import check_dev
from data_pipeline.errors import InputError

FLAGS = {"steps": 2, "batch_size": 4, "max_seq_length": 16, "precision": "float32"}
TRAINED = [f"the ferry left at {hour}" for hour in range(20)]
OTHERS = [f"the train left at {hour}" for hour in range(10)]


def write(path, texts):
    rows = [f"{text}\t{'ab'[number % 2]}" for number, text in enumerate(texts)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def start(small_shape, tiny_tokenizer, end_at_once):
    """Returns a function that fine-tunes on TRAINED, without a training step."""

    def start(out, dev=None, origin="random", train=TRAINED, **words):
        train = write(out.parent / f"{out.name}-train.tsv", train)
        files = {"train": train, "text": "text", "label": "label", "dev": dev}
        words |= {"random_baseline": False, **FLAGS}
        words["task"] = "classification"
        if origin == "random":
            words |= {"albert_config": small_shape, "tokenizer": tiny_tokenizer}
        with end_at_once():
            return finetune(origin, out, **files, **words)

    return start


@pytest.fixture(scope="module")
def partial(start, tmp_path_factory):
    """Returns the folder of a fine-tuning, 6 of whose 8 development examples were trained on."""
    folder = tmp_path_factory.mktemp("partial")
    changed = [text.upper() + " " for text in TRAINED[4:6]]
    dev = write(folder / "dev.tsv", TRAINED[:4] + changed + OTHERS[:2])
    return Path(start(folder / "out", dev).path)


@pytest.mark.parametrize("texts", [TRAINED, TRAINED[3:7], [f" {TRAINED[0].upper()}"]])
def test_a_development_file_of_training_examples_is_refused(start, texts, tmp_path):
    dev = write(tmp_path / "dev.tsv", texts)
    with pytest.raises(InputError, match="must not all be training examples: .* trained on"):
        start(tmp_path / "out", dev)
    assert not (tmp_path / "out").exists()


def test_development_examples_that_were_trained_on_are_counted(partial):
    expected = {"dev": {"rows": 8, "exact": 4, "normalised": 6, "is_estimate": False}}
    result = read_results(partial)
    assert result.overlap == expected
    assert json.loads((partial / "results.json").read_text())["overlap"] == expected
    run = json.loads((partial / "seed-12345" / "run.json").read_text())
    assert run["data"]["overlap"] == expected
    (line,) = [line for line in lines(result) if "trained on" in line]
    assert line.startswith("warning: 6 of 8 rows of dev were trained on (4 exactly, the others")
    assert lines(result._replace(overlap={})) == [one for one in lines(result) if one != line]


def test_the_model_card_says_it(partial, tmp_path):
    from albert_keras.serving.export.model_card import model_card
    from tests.albert_keras.serving.card_records import FINETUNED, publish

    record = FINETUNED | open_source(partial).describe() | {"scores": {"accuracy": 0.75}}
    card = " ".join(model_card(publish(tmp_path / "mail", 1, record)).split())
    assert "**These are not held-out scores: 6 of 8 rows were trained on (4 exactly" in card
    assert "accuracy 0.75 (6 of 8 rows were trained on" in card  # in the table of versions


def test_a_warning_comes_before_the_training(caplog):
    config = TaskConfig(name="classification", text="t", label="l", dev="dev.tsv")
    train = [TextExample("0", "a"), TextExample("1", "b")]
    dev = [TextExample("0", "c"), TextExample("1", "b", None, "x"), TextExample("2", "d")]
    check_dev({"dev": dev}, [digest_rows(train)], config)
    assert caplog.messages == [
        "1 of 3 rows of `dev.tsv` was trained on: their score is not a held-out score."
    ]
    caplog.clear()
    assert check_dev({"dev": dev[::2]}, [digest_rows(train)], config)["dev"].normalised == 0
    assert not caplog.messages


def test_duplicates_of_held_out_examples_are_reported(start, tmp_path, caplog):
    """Copies of texts in full-width letters are held out separately, but are the same texts."""
    texts = [f"she finds box {number}" for number in range(60)]
    texts += [text.replace("box", "\uff42\uff4f\uff58") for text in texts[:30]]
    result = start(tmp_path / "out", train=texts)
    found = result.overlap["dev"]
    assert 0 < found["normalised"] < found["rows"] and found["exact"] == 0
    assert "of the split `dev` were trained on (0 exactly" in caplog.text


def test_the_training_file_is_not_evaluated_unless_it_is_allowed(partial, tmp_path, capsys):
    data = write(tmp_path / "again.tsv", TRAINED[5:15])
    with pytest.raises(InputError, match="must have rows that the model was not trained on.*10"):
        evaluate_task(partial, data)
    command = ["evaluate", "--run", str(partial), "--data", data]
    assert main(command) == 2
    assert "--allow-trained-rows" in capsys.readouterr().err
    assert main([*command, "--allow-trained-rows"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("training score: accuracy ")
    assert "\n  all 10 rows were trained on\n" in shown


def test_a_file_with_training_rows_is_scored_without_them_as_well(partial, tmp_path):
    data = write(tmp_path / "mixed.tsv", TRAINED[:9] + OTHERS)
    found = evaluate_task(partial, data)
    assert found.overlap == {"rows": 19, "exact": 9, "normalised": 9, "is_estimate": False}
    alone = evaluate_task(partial, write(tmp_path / "new.tsv", [*OTHERS[1:], OTHERS[0]]))
    assert alone.overlap["normalised"] == 0 and alone.unseen_scores is None
    labels = [(number + 9) % 2 for number in range(10)]  # as in the mixed file
    rows = [f"{text}\t{'ab'[label]}" for text, label in zip(OTHERS, labels, strict=True)]
    (tmp_path / "new.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    assert found.unseen_scores == evaluate_task(partial, tmp_path / "new.tsv").scores
    score = f"{found.unseen_scores['accuracy']:.3f}"
    line = f"  9 of 19 rows were trained on; accuracy on the other rows: {score}"
    assert line in describe_task(found)


def test_rows_of_any_averaged_run_count(partial, start, tmp_path):
    other = start(tmp_path / "other", write(tmp_path / "dev.tsv", TRAINED), train=OTHERS).path
    data = write(tmp_path / "both.tsv", TRAINED[:3] + OTHERS[:4] + ["nobody knew"])
    assert evaluate_task([partial, other], data).overlap["normalised"] == 7


def test_what_the_initial_weights_were_trained_on_counts(partial, start, tmp_path):
    dev = write(tmp_path / "dev.tsv", [*TRAINED[:5], "nobody knew"])
    result = start(tmp_path / "next", dev, f"{partial}/seed-12345", train=OTHERS)
    assert result.overlap["dev"]["normalised"] == 5
    with pytest.raises(InputError, match="all 9 rows of `old.tsv` were trained on"):
        evaluate_task(result.path, write(tmp_path / "old.tsv", TRAINED[:9]))


def test_of_older_runs_it_is_unknown_and_can_be_added(partial, start, tmp_path, caplog):
    old = Path(shutil.copytree(partial.parent, tmp_path / "old") / "out")
    shutil.rmtree(old / "seed-12345" / "trained_on")
    train = str(old.parent / "out-train.tsv")
    result = evaluate_task(old, train)
    assert result.overlap is None and result.unseen_scores is None
    assert result.unknown_overlap == (f"{old}/seed-12345",)
    assert "It is unknown whether" in caplog.text and "Repeat its `finetune`" in caplog.text
    assert "  it is unknown whether these rows were used to train" in "\n".join(
        describe_task(result)
    )
    start(old, str(partial.parent / "dev.tsv"))
    with pytest.raises(InputError, match="all 20 rows"):
        evaluate_task(old, train)


def test_a_fine_tuning_that_began_with_training_examples_is_resumed(partial, start, tmp_path):
    """Older versions did not refuse them."""
    old = Path(shutil.copytree(partial.parent, tmp_path / "old") / "out")
    dev = write(tmp_path / "dev.tsv", TRAINED[:8])
    result = start(old, dev, allow_changes=["data.dev_fingerprint"])
    assert result.overlap["dev"]["normalised"] == 8
    assert any("these are training scores" in line for line in lines(result))


@pytest.mark.slow
def test_sst_2_with_training_rows_is_reported(
    shared_data, start, small_shape, tiny_tokenizer, tmp_path, caplog
):
    """The case of the issue: 1,500 rows, 1,350 of which were trained on."""
    rows = (shared_data / "glue" / "SST-2" / "train.tsv").read_text(encoding="utf-8").splitlines()
    different = list({" ".join(row.split("\t")[0].split()): row for row in rows[1:]}.values())
    files = {"train": different[:4000], "mixed": different[2650:4150], "new": different[4000:4150]}
    for name, chosen in files.items():
        (tmp_path / f"{name}.tsv").write_text("\n".join([rows[0], *chosen]) + "\n")
    assert len(files["mixed"]) == 1500
    words = {"albert_config": small_shape, "tokenizer": tiny_tokenizer, **FLAGS, "steps": 50}
    words |= {"task": "classification", "text": "sentence", "label": "label"}
    words |= {"train": str(tmp_path / "train.tsv"), "random_baseline": False}
    result = finetune("random", tmp_path / "out", dev=str(tmp_path / "mixed.tsv"), **words)
    assert result.overlap["dev"]["normalised"] == 1350
    with caplog.at_level(logging.WARNING):
        found = evaluate_task(tmp_path / "out", tmp_path / "mixed.tsv")
    assert "1,350 of 1,500 rows of `mixed.tsv` were trained on" in caplog.text
    assert found.unseen_scores == evaluate_task(tmp_path / "out", tmp_path / "new.tsv").scores
