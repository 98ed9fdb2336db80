"""Several numbers for each row."""

import numpy as np
import pytest

from albert_keras.tasks import metrics
from albert_keras.tasks.classification.multi_regression import scores_answers
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import MULTI_REGRESSION, build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

EXAMPLES = [
    TextExample(str(number), "A.", None, (float(number), number % 3 - 1.0)) for number in range(8)
]


def task(**settings):
    usual = {"name": "regression", "text": "text", "label": ["grade", "length"]}
    return build_task(TaskConfig(**usual | settings))


def test_columns_of_numbers_are_outputs(tmp_path, tiny_tokenizer):
    path = tmp_path / "x.csv"
    path.write_text("text;grade;length\nA.;1.5;-2\nB.;0;1e2\n")
    it = task(train=str(path), dev=str(path))
    assert (it.kind, it.metric, it.num_outputs) == (MULTI_REGRESSION, "pearson", 2)
    examples = it.read("train")
    assert [example.label for example in examples] == [(1.5, -2.0), (0.0, 100.0)]
    batch = it.features(examples, tiny_tokenizer, training=True).batch([1, 0])
    assert batch["labels"].dtype == np.float32
    assert batch["labels"].tolist() == [[0.0, 100.0], [1.5, -2.0]]
    path.write_text("text;grade;length\nA.;1.5;long\n")
    with pytest.raises(InputError, match="line 2 must have a number in `length`. Received: 'long'"):
        it.read_file(path, labelled=True)


def test_scores_are_means_over_the_outputs_and_those_of_each():
    given = np.array([example.label for example in EXAMPLES]) * [1, -1] + [0.5, 0]
    answers = scores_answers(EXAMPLES, ("grade", "length"), given)
    assert answers[1].scores == {"grade": 1.5, "length": 0.0}
    scores = task().scores(EXAMPLES, answers)
    assert scores["pearson_grade"] == pytest.approx(1) == -scores["pearson_length"]
    assert scores["pearson"] == pytest.approx(0)
    assert scores["mean_squared_error_grade"] == 0.25
    truth = np.array([example.label for example in EXAMPLES])
    each = [metrics.mean_squared_error(truth[:, k], given[:, k]) for k in (0, 1)]
    assert scores["mean_squared_error"] == pytest.approx(np.mean(each))
    low, high = task().interval(EXAMPLES, answers)
    assert -1 <= low <= high <= 1


def test_guesses_are_the_means_and_count_as_collapsed():
    guesses = task().guesses(EXAMPLES, EXAMPLES[:2])
    means = {"grade": 3.5, "length": pytest.approx(-0.125)}
    assert [guess.scores for guess in guesses] == [means] * 2
    assert task().collapse(guesses) == "all 2 scores are about 3.5, -0.125"
    answers = scores_answers(EXAMPLES, ("a", "b"), np.array([one.label for one in EXAMPLES]))
    assert task().collapse(answers) is None


def test_errors_are_ordered_by_the_mean_distance():
    answers = scores_answers(EXAMPLES[:2], ("grade", "length"), np.array([[0, -1.0], [2, 1]]))
    first, second = task().errors(EXAMPLES[:2], answers)
    assert first[1:] == ("A.", "grade 1, length 0", "grade 2, length 1", 1.0)
    assert second.confidence == 0
