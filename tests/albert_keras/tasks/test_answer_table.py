"""Tables of answers keep the columns of their input."""

import csv
import json

from albert_keras.models.answers import ClassAnswer, SpanAnswer, TagAnswer
from albert_keras.tasks.answer_table import check_out, is_answer_table, write_answer_table

SPAM = ClassAnswer("0", "spam", 0.75, {"ham": 0.25, "spam": 0.75}, 3)
COLUMNS = {"body": 'Win, "now"\n', "label": "old", "predicted_label": "older", "note": ""}


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_csv_has_the_columns_of_the_input_and_of_the_answer(tmp_path):
    out = tmp_path / "new" / "answers.csv"
    write_answer_table(out, [COLUMNS, {"body": "b"}], [SPAM, SPAM._replace(label="ham")])
    first, second = read_csv(out)
    assert first == COLUMNS | {
        "predicted_predicted_label": "spam",
        "probability": "0.75",
        "probabilities_ham": "0.25",
        "probabilities_spam": "0.75",
        "dropped_tokens": "3",
    }
    assert second["label"] == "" and second["predicted_predicted_label"] == "ham"
    assert list(out.parent.iterdir()) == [out]


def test_a_jsonl_keeps_values_and_names_them_alike_in_each_row(tmp_path):
    out = tmp_path / "answers.jsonl"
    rows = [{"text": "a", "label": [1]}, {"text": "\u2028\ud800", "n": 1.5}]
    write_answer_table(out, rows, [SPAM, SPAM])
    first, second = map(json.loads, out.read_text(encoding="ascii").splitlines())
    assert first["label"] == [1] and "label" not in second and second["n"] == 1.5
    assert first["predicted_label"] == second["predicted_label"] == "spam"
    assert first["probabilities"] == SPAM.probabilities and second["text"] == "\u2028\ud800"


def test_lists_are_json_in_a_csv(tmp_path):
    words = ("Ada", "é")
    tags = TagAnswer("0", words, ("B", "O"), (0.5, 0.75))
    write_answer_table(tmp_path / "tags.csv", [{"id": "7", "words": words}], [tags])
    [row] = read_csv(tmp_path / "tags.csv")
    assert list(row) == ["id", "words", "tags", "probabilities", "dropped_words"]
    assert json.loads(row["words"]) == ["Ada", "é"] and json.loads(row["tags"]) == ["B", "O"]
    span = SpanAnswer("0", "Ada", 0.5, 0, 3, None, [{"text": "Ada"}])
    write_answer_table(tmp_path / "spans.csv", [{"question": "Who?"}], [span])
    [row] = read_csv(tmp_path / "spans.csv")
    assert "nbest" not in row and row["text"] == "Ada" and row["start"] == "0"


def test_the_ending_tells_tables_from_folders(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    assert is_answer_table("a.csv") and is_answer_table("a.JSONL")
    for folder in (None, tmp_path / "answers" / "v1.5", tmp_path / "folder.csv"):
        assert not is_answer_table(folder)
        check_out(folder)
