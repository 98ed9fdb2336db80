"""Thresholds of labels: what they find, and the one at which errors cost least."""

import numpy as np
import pytest

from albert_keras.cli.evaluate import threshold_lines
from albert_keras.models.answers import ClassAnswer, LabelsAnswer
from albert_keras.tasks.costs import threshold_tables
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

#: Probabilities of spam, and whether it is.
MAIL = [(0.05, False), (0.15, True), (0.35, False), (0.55, True), (0.65, False), (0.95, True)]


def two_classes(mail=MAIL):
    task = build_task(TaskConfig(name="classification", text="text", label="folder"))
    task.labels = ("ham", "spam")
    examples = [TextExample("", "text", None, task.labels[is_spam]) for _, is_spam in mail]
    answers = [ClassAnswer("", "", 0.0, {"ham": 1 - value, "spam": value}) for value, _ in mail]
    return task, examples, answers


def test_a_table_has_precision_and_recall_from_each_threshold():
    (table,) = threshold_tables(*two_classes())
    assert table.label == "spam" and table.cheapest is None
    found = {row.threshold: (row.precision, row.recall) for row in table.rows}
    assert list(found) == pytest.approx(np.arange(1, 10) / 10)
    assert found[0.1] == pytest.approx((3 / 5, 1)) and found[0.5] == pytest.approx((2 / 3, 2 / 3))
    assert found[0.9] == pytest.approx((1, 1 / 3))


@pytest.mark.parametrize("miss_cost", [0.0, 0.2, 0.9, 1.5, 3.0, 20.0])
def test_no_threshold_costs_less_than_the_chosen_one(miss_cost):
    values, truth = map(np.array, zip(*MAIL, strict=True))

    def cost(threshold):
        given = values >= threshold
        return (given & ~truth).sum() + miss_cost * (truth & ~given).sum()

    (table,) = threshold_tables(*two_classes(), miss_cost)
    assert cost(table.cheapest.threshold) == min(map(cost, np.linspace(0, 1, 101)))
    assert (table.cheapest.recall == 1) == (miss_cost > 1)


def test_each_of_several_labels_has_a_table_unless_all_rows_are_alike():
    config = TaskConfig(name="classification", text="text", label=("a", "b", "c"))
    examples = [TextExample("", "one", None, ("a", "b")), TextExample("", "two", None, ("a",))]
    answers = [LabelsAnswer("", (), {"a": 0.9, "b": value, "c": 0.1}) for value in (0.8, 0.3)]
    (table,) = threshold_tables(build_task(config), examples, answers, 2.0)
    assert table.label == "b" and table.cheapest == pytest.approx((0.55, 1.0, 1.0))
    assert threshold_lines([table]) == [
        "  precision, recall from        0.1        0.3        0.5        0.7        0.9"
        "            least cost",
        "  b                       0.50 1.00  0.50 1.00  1.00 1.00  1.00 1.00  1.00 0.00"
        "  1.00 1.00 from 0.550",
    ]


def test_a_cost_requires_a_label_with_a_threshold():
    task, examples, answers = two_classes(MAIL[:1])
    assert threshold_tables(task, examples, answers) == () == tuple(threshold_lines(()))
    with pytest.raises(InputError, match="`miss_cost` requires two classes"):
        threshold_tables(task, examples, answers, 2.0)


def test_an_evaluation_has_the_tables(tuned_toy):
    (table,) = evaluate_task(tuned_toy.path, miss_cost=5).threshold_tables
    assert table.label == "yes" and table.cheapest.recall > 0.9
