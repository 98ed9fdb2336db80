"""Files of predictions are scored as the official scripts do."""

import json

import pytest
import sklearn.metrics

from albert_keras.cli import main
from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.score_files import score_predictions
from tests.albert_keras.tasks.small_tasks import write_squad


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def squad(folder, **questions):
    """Writes a file of questions, given by id with their answers."""
    context, examples = "The red fox", []
    for name, texts in questions.items():
        answers = tuple(Answer(text, context.index(text)) for text in texts)
        examples.append(QuestionExample(name, "?", context, answers, not answers))
    return write_squad(folder / "dev.json", *examples)


def test_classes_are_scored_by_order_whatever_the_index(tmp_path):
    truth, given = [1, 0, 1, 1], [1, 1, 0, 1]
    data = write(tmp_path / "dev.tsv", *(f"gj04\t{label}\t\tA sentence" for label in truth))
    lines = [f"{number}\t{label}" for number, label in enumerate(given, 7)]
    predictions = write(tmp_path / "CoLA.tsv", "index\tprediction", *lines)
    found = score_predictions("cola", data, predictions)
    assert found.examples == 4
    assert found.scores == pytest.approx(
        {"matthews": sklearn.metrics.matthews_corrcoef(truth, given), "accuracy": 0.5}, abs=1e-12
    )


def test_f1_names_its_class(tmp_path, capsys):
    rows = [f"{label}\t1\t2\tA text\tAnother one" for label in (1, 0, 1)]
    data = write(tmp_path / "dev.tsv", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows)
    given = write(tmp_path / "MRPC.tsv", "index\tprediction", "0\t1", "1\t1", "2\t1")
    assert main(["score", f"{given}", "--task", "mrpc", "--data", f"{data}"]) == 0
    assert "\n  f1 (of `1`)          0.8\n" in capsys.readouterr().out


def test_answers_that_are_missing_count_as_wrong_in_version_1(tmp_path):
    data = squad(tmp_path, a=["red fox"], b=["The red fox"], c=["fox"])
    predictions = write(tmp_path / "p.json", json.dumps({"a": "Red fox!", "b": "red", "x": "y"}))
    found = score_predictions("squad1", data, predictions)
    assert found[:3] == ("squad1", 3, pytest.approx({"exact_match": 100 / 3, "f1": 100 * (5 / 9)}))


def test_null_odds_find_thresholds_and_change_no_score(tmp_path):
    data = squad(tmp_path, a=["fox"], b=[])
    predictions = write(tmp_path / "p.json", json.dumps({"a": "fox", "b": "red"}))
    odds = write(tmp_path / "n.json", json.dumps({"a": 1.5, "b": 7.0}))
    found = score_predictions("squad2", data, predictions, odds).scores
    assert (found["exact"], found["HasAns_exact"], found["NoAns_exact"]) == (50, 100, 0)
    assert (found["best_f1"], found["best_f1_thresh"]) == (100, 1.5)
    without = score_predictions("squad2", data, predictions).scores
    assert without == {name: found[name] for name in without}
