"""Labels, scores, options and texts that are something else are counted, with examples."""

import pytest

from albert_keras.tasks.example_report import report_examples
from albert_keras.tasks.examples import ChoiceExample, TaggedExample, TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.tables.cells import RowError, are_several, score_of
from albert_keras.tasks.task_config import TaskConfig

TEXT = "The old ferry left the harbour"


def findings(name, examples, **settings):
    """Returns the warnings about training examples by name."""
    task = build_task(TaskConfig(name=name, **settings))
    report = report_examples(task, {"train": examples})["train"]
    return {one.name: one.text for one in report.findings if one.is_good is False}


def texts(values, **more):
    return [TextExample(str(n), f"{TEXT} {n}x", None, one) for n, one in enumerate(values)]


def labelled(*odd):
    names = [*odd, *["ham", "spam"] * 10]
    columns = {"text": "text", "label": "label", "labels": tuple(dict.fromkeys(names))}
    return findings("classification", texts(names), **columns)


@pytest.mark.parametrize(
    "label",
    [
        "05-Sep",
        "Sep-05",
        "5. Okt",
        "01-févr",
        "2026-09-05 00:00:00",
        "5/9/2026",
        "May-09",
        "05.сен",
        "5月9日",
    ],
)
def test_dates_of_spreadsheets_are_counted(label):
    found = labelled(label, label)["dates"]
    assert found.startswith("9.1 % of the labels (2): they are dates") and f"`{label}`" in found


@pytest.mark.parametrize("label", ["#N/A", "#REF!", "N/A", "null", "-999", "#¡VALOR!", "#N/D"])
def test_labels_that_mean_none_are_counted(label):
    assert f"`{label}`" in labelled(label)["missing"]


@pytest.mark.parametrize(
    "label", ["15-19", "0-4", "Top-10", "1.2.3", "none", "may", "24/7", "#news", "#1"]
)
def test_other_labels_are_none_of_these(label):
    assert not labelled(*[label] * 5).keys() & {"dates", "missing"}


def test_classes_that_are_all_joins_are_counted():
    columns = {"text": "text", "label": "label"}
    for sign in "|;,、":
        names = [f"{one[0]}{sign}{one[1]}" for one in ("ab", "bc", "ac")]
        examples = texts(names * 8)
        found = findings("classification", examples, labels=tuple(names), **columns)
        assert "seems to be several, as do 3 of 3 classes" in found["several labels"]
    assert not are_several("food/drink", ["food/drink", "food/travel", "arts"])


@pytest.mark.parametrize(
    "scores, name, text",
    [
        ([3.0] * 9, "scores", "max 3: all are the same"),
        ([1.0, 2.0, 4.5, -999.0, -999.0], "missing", "40.0 % of the scores (2)"),
        ([996.0, 1.234, 2.515, 12.75, 870.0, 1.118, 3.333, 4.445], "scores", ""),
        ([1.0, 2.0, 3.0, 5.0, 99.0, 99.0], "scores", "99 in 2 of 6, far from all others: perhaps"),
        (
            [996.0, 1.1, 2.5, 1.234, 2.515, 12.75, 870.0, 3.333, 4.445],
            "scores",
            "4 of 9 have three",
        ),
        ([996.0, 1.234, 2.515, 12.755, 870.0], "scores", "3 of 5 have three decimals, as 1.234"),
    ],
)
def test_scores_that_are_something_else(scores, name, text):
    found = findings("regression", texts(scores), text="text", label="label")
    assert text in found[name]


@pytest.mark.parametrize(
    "scores",
    [
        [1.0, 2.5, 4.125, 3.0],
        [33.333, 66.667, 100.0, 50.0, 9.0],
        [0.0, 1.0, 0.0, 1.0],
        [-1.0, 0.0, 1.0, -1.0],
        [1.0, 2.0, 3.0, 4.0, 99.0],
        [1.2, 2.3, 3.4, 12.7, 12.7],
    ],
)
def test_usual_scores(scores):
    found = findings("regression", texts(scores), text="text", label="label")
    assert not found.keys() & {"scores", "missing"}


def test_separators_of_thousands_are_not_decimal_commas():
    for value in ("7,516", "1.234,5", "1 234", "1’234"):
        with pytest.raises(RowError, match="a decimal point alone: 1234.5 for 1,234.5 or 1.234,5"):
            score_of([value], ["price"])


def test_texts_that_are_blank_or_numbers():
    columns = {"text": "text", "label": "label", "labels": ("x", "y")}
    pairs = [TextExample(str(n), f"{TEXT} {n}x", " " * (n % 2), "xy"[n % 2]) for n in range(8)]
    found = findings("classification", pairs, pair="pair", **columns)
    assert found["blank"].startswith("50.0 % of the texts and options (8)")
    rows = [TextExample(str(n), f"{n},{n}0 €", None, "xy"[n % 2]) for n in range(8)]
    found = findings("classification", rows, **columns)
    assert found["numbers"].startswith("100.0 % of the texts (8): or addresses alone: is it")
    links = [row._replace(first=f"https://example.org/{row.id}") for row in rows]
    assert "(8)" in findings("classification", links, **columns)["numbers"]
    pairs = [
        row._replace(first=f"{TEXT} {row.id}x", second=f"{TEXT.upper()} {row.id}X") for row in rows
    ]
    assert "(8)" in findings("classification", pairs, pair="pair", **columns)["equal texts"]
    rows = [row._replace(first="#NAME?") for row in rows]
    assert "(1)" in findings("classification", rows, **columns)["missing"]


def test_blank_and_equal_options():
    options = ("Bread", "", "bread ", "Books")
    questions = [ChoiceExample(str(n), f"{TEXT} {n}x", "What?", options, 1) for n in range(3)]
    found = findings("race", questions)
    assert found["blank"].startswith("16.7 % of the texts and options (3)")
    assert found["equal options"].startswith("25.0 % of the options (3)")


def test_tags_with_a_prefix_inside():
    names = ("O", "B-A-CO", "B-PER#B-ORG", "I-B-LOC", "B-PER/X")
    sentences = [TaggedExample(str(n), tuple("abcde"), names) for n in range(6)]
    found = findings("tagging", sentences, labels=names)
    assert found["prefixes"].startswith("40.0 % of the tags (12): a prefix inside a type")


def test_texts_have_the_findings_of_a_corpus():
    rows = [TextExample(str(n), f"{TEXT}&amp;{n}", None, "xy"[n % 2]) for n in range(8)]
    found = findings("classification", rows, text="text", label="label", labels=("x", "y"))
    assert found["markup"].startswith("100.0 % of the texts (8)")


def test_near_duplicates_between_splits():
    task = build_task(TaskConfig(name="classification", text="t", label="l", labels=("x", "y")))
    train = [TextExample(str(n), f"Order {n} left, {TEXT}.", None, "xy"[n % 2]) for n in range(40)]
    dev = [
        one._replace(first=one.first.replace("left", f"{n + 50} left"))
        for n, one in enumerate(train)
    ]
    changes = [("old ", ""), ("ferry", "green ferry"), ("harbour", "port")]
    dev += [train[0]._replace(first=train[0].first.replace(*pair)) for pair in changes]
    others = [train[0]._replace(first=f"Nobody wondered why it was so late, {n}") for n in range(9)]
    report = report_examples(task, {"train": train, "dev": dev + others})["dev"]
    [near] = [one for one in report.findings if one.name == "near-duplicates"]
    assert not near.is_good and near.text.startswith("43 of the 52 examples differ from one of")
