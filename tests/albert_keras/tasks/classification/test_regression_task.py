"""One or several numbers for each row."""

import numpy as np
import pytest

from albert_keras.models.answers import ScoreAnswer
from albert_keras.tasks import metrics
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

EXAMPLES = [
    TextExample(str(number), "A.", None, (float(number), number % 3 - 1.0)) for number in range(8)
]


def task(**settings):
    usual = {"name": "regression", "text": "text", "label": ["grade", "length"]}
    return build_task(TaskConfig(**usual | settings))


def test_columns_of_numbers_are_outputs(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("text;grade;length\nA.;1.5;-2\nB.;0;1e2\n")
    it = task(train=str(path), dev=str(path))
    assert (it.kind, it.metric, it.num_outputs) == ("multi_regression", "pearson", 2)
    examples = it.read("train")
    assert [example.label for example in examples] == [(1.5, -2.0), (0.0, 100.0)]
    path.write_text("text;grade;length\nA.;1.5;long\n")
    with pytest.raises(InputError, match="line 2 must have a number in `length`. Received: 'long'"):
        it.read_file(path, labelled=True)


def test_scores_are_means_over_the_outputs_and_those_of_each():
    given = np.array([example.label for example in EXAMPLES]) * [1, -1] + [0.5, 0]
    answers = task().read_out(EXAMPLES, given)
    assert answers[1].scores == {"grade": 1.5, "length": 0.0}
    scores = task().scores(EXAMPLES, answers)
    assert scores["pearson_grade"] == pytest.approx(1) == -scores["pearson_length"]
    assert scores["pearson"] == pytest.approx(0)
    assert scores["mean_squared_error_grade"] == 0.25
    truth = np.array([example.label for example in EXAMPLES])
    each = [metrics.METRICS["mean_squared_error"](truth[:, k], given[:, k]) for k in (0, 1)]
    assert scores["mean_squared_error"] == pytest.approx(np.mean(each))


def test_guesses_are_the_means_and_all_the_same():
    guesses = task().guesses(EXAMPLES, EXAMPLES[:2])
    means = {"grade": 3.5, "length": pytest.approx(-0.125)}
    assert [guess.scores for guess in guesses] == [means] * 2
    assert task().collapse(guesses) == "all 2 answers are 3.5, -0.125"
    answers = task().read_out(EXAMPLES, np.array([one.label for one in EXAMPLES]))
    assert task().collapse(answers) is None


def test_errors_are_ordered_by_the_mean_distance():
    answers = task().read_out(EXAMPLES[:2], np.array([[0, -1.0], [2, 1]]))
    first, second = task().errors(EXAMPLES[:2], answers)
    assert first[1:] == (("A.",), "grade 1, length 0", "grade 2, length 1", 1.0)
    assert second.confidence == 0


def labelled(*labels):
    return [TextExample(str(id), f"text {id}", label=label) for id, label in enumerate(labels)]


@pytest.mark.parametrize("name", ["sts-b", "regression"])
def test_one_number_is_answered_scored_and_guessed(name):
    columns = {"text": "text", "label": "label"} if name == "regression" else {}
    it = build_task(TaskConfig(name=name, **columns))
    assert (it.kind, it.metric, it.num_outputs, it.labels) == ("regression", "pearson", 1, ())
    answers = it.read_out(labelled(None, None), np.array([[1.5], [6.5]]))
    assert answers == [ScoreAnswer("0", 1.5), ScoreAnswer("1", 6.5)]
    scores = [ScoreAnswer(str(id), score) for id, score in enumerate((1.0, 2.0, 4.0))]
    found = it.scores(labelled(1.0, 2.0, 3.0), scores)
    assert list(found) == ["pearson", "spearman", "mean_squared_error"]
    assert found["spearman"] == pytest.approx(1) and found["mean_squared_error"] == 1 / 3
    assert it.guesses(labelled(1.0, 2.0, 4.5), labelled(None)) == [ScoreAnswer("0", 2.5)]
    assert it.errors(labelled(2.5, 1.0), [ScoreAnswer("0", 2.5), ScoreAnswer("1", -0.5)]) == [
        ("1", ("text 1",), "1", "-0.5", 1.5),
        ("0", ("text 0",), "2.5", "2.5", 0.0),
    ]
    assert it.confusion(labelled(2.5), [ScoreAnswer("0", 2.5)]) is None
    assert it.collapse([ScoreAnswer("0", 2.5)] * 2) == "all 2 answers are 2.5"
