"""Outputs become answers, and answers become lines of JSON."""

import json

import numpy as np

from albert_keras.tasks.classification.regression import ScoreAnswer, score_answers
from albert_keras.tasks.classification.task import ClassAnswer, class_answers
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig

EXAMPLES = [TextExample("a", "x"), TextExample("b", "y")]


def test_answers_are_written_line_by_line(tmp_path):
    answers = [ScoreAnswer("1", 0.5), ScoreAnswer("\u2028 \ud800 ä", -1.0)]
    [path] = build_task(TaskConfig(name="sts-b")).write(tmp_path / "new", "dev", [], answers)
    assert path == tmp_path / "new" / "predictions-dev.jsonl"
    assert [path] == list((tmp_path / "new").iterdir())
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": "1", "score": 0.5, "dropped_tokens": 0},
        {"id": "\u2028 \ud800 ä", "score": -1.0, "dropped_tokens": 0},
    ]


def test_the_best_class_is_answered_and_the_first_of_equals():
    answers = class_answers(EXAMPLES, ("no", "yes"), np.array([[0.5, 0.5], [0.25, 0.75]]))
    assert answers == [
        ClassAnswer("a", "no", 0.5, {"no": 0.5, "yes": 0.5}),
        ClassAnswer("b", "yes", 0.75, {"no": 0.25, "yes": 0.75}),
    ]
    assert score_answers(EXAMPLES, np.array([1.5, 2])) == [
        ScoreAnswer("a", 1.5),
        ScoreAnswer("b", 2.0),
    ]
