"""The lines that `finetune` and `evaluate` print for a result or a task, without any run."""

import pytest

from albert_keras.cli.evaluate import describe_task
from albert_keras.cli.finetune import question_of
from albert_keras.tasks.evaluate import TaskEvaluation
from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.task_config import TaskConfig


def test_scores_of_questions_are_in_percent_and_counts_are_whole():
    scores = {"f1": 51.25, "exact": 50.0, "total": 1424, "HasAns_total": 1404, "NoAns_f1": 100.0}
    evaluation = TaskEvaluation(
        ("run",),
        "squad2",
        "dev.json",
        "f1",
        1424,
        scores,
        Interval(48.5, 54),
        {"f1": 50.07},
        "all 1424 answers are no answer",
        {"null_threshold": -1.5},
        False,
    )
    assert describe_task(evaluation) == [
        "f1 51.2 [48.5, 54.0] on 1,424 examples of dev.json",
        "  exact 50.0  HasAns_total 1,404  NoAns_f1 100.0",
        "  always the same answer: f1 50.1",
        "  tuned in training: null_threshold -1.5",
        "warning: all 1424 answers are no answer",
    ]
    here = describe_task(evaluation._replace(is_tuned_here=True))
    assert here[3] == "  tuned on the same examples: null_threshold -1.5"


QUESTIONS = [
    ("sst-2", {}, "TEXT"),
    ("mrpc", {}, "TEXT --pair TEXT"),
    ("ax", {}, "TEXT --pair TEXT"),
    ("squad2", {}, "TEXT --question TEXT"),
    ("race", {}, "TEXT --question TEXT --option TEXT --option TEXT"),
    ("classification", {"text": "a"}, "TEXT"),
    ("regression", {"text": "a", "pair": "b"}, "TEXT --pair TEXT"),
    ("tagging", {}, "TEXT"),
]


@pytest.mark.parametrize("name, columns, arguments", QUESTIONS)
def test_the_next_command_has_the_inputs_of_the_task(name, columns, arguments):
    assert question_of(TaskConfig(name=name, **columns)) == arguments
