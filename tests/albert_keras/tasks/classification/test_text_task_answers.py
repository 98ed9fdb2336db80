"""Texts and pairs: what is answered, scored and written."""

import json

import numpy as np

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.classification.regression import ScoreAnswer
from albert_keras.tasks.classification.task import ClassAnswer
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig


def task(name="classification", **settings):
    columns = {} if name in GLUE_TASKS else {"text": "text", "label": "label"}
    return build_task(TaskConfig(name=name, **columns, **settings))


def classified(names, chosen, sure=0.75):
    """Returns answers: class number `chosen[i]` of two for example i."""
    rest = 1 - sure
    return [
        ClassAnswer(
            str(id),
            names[number],
            sure,
            {names[number]: sure, names[1 - number]: rest},
        )
        for id, number in enumerate(chosen)
    ]


def labelled(*labels):
    return [TextExample(str(id), f"text {id}", label=label) for id, label in enumerate(labels)]


def test_the_most_probable_class_is_answered():
    examples = labelled(None, None)
    logits = np.array([[0, np.log(3)], [np.log(3), 0]])
    answers = task("cola").answers(examples, None, {"logits": logits})
    assert [answer.label for answer in answers] == ["1", "0"]
    np.testing.assert_allclose([answer.probability for answer in answers], 0.75)
    assert list(answers[0].probabilities) == ["0", "1"]
    [first] = task("cola").answers(labelled(None), None, {"logits": np.zeros((1, 2))})
    assert first == ClassAnswer("0", "0", 0.5, {"0": 0.5, "1": 0.5})  # the first of equals


def test_answers_are_written_line_by_line(tmp_path):
    answers = [ScoreAnswer("1", 0.5), ScoreAnswer("\u2028 \ud800 ä", -1.0)]
    [path] = task("sts-b").write(tmp_path / "new", "dev", [], answers)
    assert path == tmp_path / "new" / "predictions-dev.jsonl"
    assert [path] == list((tmp_path / "new").iterdir())
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [answer._asdict() for answer in answers]


def test_scores_are_those_of_the_task():
    examples = labelled("0", "1", "1", "1")
    answers = classified("01", [0, 1, 1, 0])
    assert task("mrpc").scores(examples, answers) == {"accuracy": 0.75, "f1": 0.8}
    own = task(labels=("0", "1")).scores(examples, answers)
    assert list(own) == ["accuracy", "macro_f1", "f1"] and own["f1"] == 0.8
    assert list(task(labels=("0", "1", "2")).scores(examples, answers)) == ["accuracy", "macro_f1"]


def test_guesses_are_the_most_frequent_class():
    examples = labelled(None, None)
    [first, second] = task("cola").guesses(labelled(*"1101"), examples)
    assert first == ClassAnswer("0", "1", 0.75, {"0": 0.25, "1": 0.75}) and second.id == "1"


def test_collapse_to_one_class_is_told():
    it = task("cola")
    assert it.collapse(classified("01", [1] * 872)) == "all 872 answers are `1`"
    assert it.collapse(classified("01", [1, 1, 0])) is None
    assert it.collapse(classified("01", [1])) is None


def test_errors_begin_with_the_worst():
    it = task("cola")
    examples = [TextExample(str(id), "a\tb", "c\n", "0") for id in range(3)]
    answers = [
        *classified("01", [0]),
        ClassAnswer("1", "1", 0.6, {"0": 0.4, "1": 0.6}),
        ClassAnswer("2", "1", 0.9, {"0": 0.1, "1": 0.9}),
    ]
    assert it.errors(examples, answers) == [
        ("2", "a b ||| c", "0", "1", 0.9),
        ("1", "a b ||| c", "0", "1", 0.6),
    ]
    matrix, names = it.confusion(examples, answers)
    assert matrix.tolist() == [[1, 2], [0, 0]] and names == ("0", "1")


def test_test_splits_become_leaderboard_files_and_others_lines_of_json(tmp_path):
    examples = [TextExample("7", "A.", "B.")]
    answers = [ClassAnswer("7", "neutral", 1.0, {"neutral": 1.0})]
    for split, name in (("ax", "AX.tsv"), ("test_mismatched", "MNLI-mm.tsv")):
        paths = task("mnli").write(tmp_path, split, examples, answers)
        assert {path.name for path in paths} == {f"predictions-mnli-{split}.jsonl", name}
        assert (tmp_path / name).read_text() == "index\tprediction\n7\tneutral\n"
    assert len(task("ax").write(tmp_path, "ax", examples, answers)) == 2
    task("sts-b").write(tmp_path, "test", examples, [ScoreAnswer("7", 5.5)])
    assert (tmp_path / "STS-B.tsv").read_text() == "index\tprediction\n7\t5.00000\n"
    assert json.loads((tmp_path / "predictions-sts-b-test.jsonl").read_text())["score"] == 5.5
    [path] = task("mnli").write(tmp_path, "dev_matched", examples, answers)
    assert path.name == "predictions-dev_matched.jsonl"
