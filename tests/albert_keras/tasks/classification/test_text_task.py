"""Texts and pairs: what is read, laid out, answered, scored and written."""

import json

import numpy as np
import pytest

from albert_keras.models.answers import ClassAnswer, ScoreAnswer
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

MNLI = ("dev_matched", "dev_mismatched")


def task(name="classification", **settings):
    if name not in GLUE_TASKS:
        settings = {"text": "text", "label": "label"} | settings
    return build_task(TaskConfig(name=name, **settings))


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return str(path)


def table(path, labels, header="text\tlabel"):
    return write(path, header, *(f"text {number}\t{label}" for number, label in enumerate(labels)))


@pytest.mark.parametrize(
    "name, kind, metric, dev, test, count",
    [
        ("cola", "classification", "matthews", ("dev",), ("test",), 2),
        ("sts-b", "regression", "pearson", ("dev",), ("test",), 1),
        ("mnli", "classification", "accuracy", MNLI, ("test_matched", "test_mismatched"), 3),
    ],
)
def test_glue_tasks_know_what_they_are_without_any_file(name, kind, metric, dev, test, count):
    it = task(name)
    assert (it.kind, it.metric, it.dev_splits, it.test_splits) == (kind, metric, dev, test)
    assert it.num_outputs == count and it.max_seq_length == 128
    assert task(name, labels=it.labels).labels == it.labels


def test_given_files_take_the_place_of_official_ones(tmp_path):
    header = "\t".join(["index", *"1234567", "sentence1", "sentence2", "gold_label"])
    row = "\t".join(["7", *"1234567", "A.", "B.", "neutral"])
    path = write(tmp_path / "mine.tsv", header, row)
    it = task("mnli", train=path, dev=path)
    assert it.dev_splits == ("dev",)
    assert it.read("train") == it.read("dev") == it.read_file(path, labelled=True)
    assert it.read("dev") == [TextExample("7", "A.", "B.", "neutral")]


def test_a_share_of_an_own_table_is_held_out_and_the_same_each_time(tmp_path):
    path = table(tmp_path / "train.tsv", ["no", "yes"] * 50)
    it, again = (task(train=path, dev_share=0.3) for _ in range(2))
    train, dev = it.read("train"), it.read("dev")
    assert 10 < len(dev) < 50 and len(train) + len(dev) == 100
    assert not {example.first for example in train} & {example.first for example in dev}
    assert (again.read("dev"), again.read("train")) == (dev, train)
    assert it.labels == ("no", "yes")


@pytest.mark.parametrize("settings", [{"labels": ("a", "b")}, {"train": "train.tsv"}])
def test_unknown_labels_are_told_by_file_and_line(tmp_path, monkeypatch, settings):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "train.tsv", "ab")
    path = table(tmp_path / "dev.tsv", "abc")
    with pytest.raises(InputError, match="dev.tsv` line 4 has an unknown label, `c`"):
        task(dev=path, **settings).read("dev")
    table(tmp_path / "dev.tsv", ["a", "b, a"])
    with pytest.raises(InputError, match="line 3 .*`b, a`. Expected one of: a, b"):
        task(dev=path, **settings).read("dev")


def test_an_example_is_made_of_what_was_typed():
    assert task("sst-2").typed_example(3, {"text": "Good."}) == TextExample("3", "Good.")
    assert task("rte").typed_example(0, {"text": "A.", "pair": ""}) == TextExample("0", "A.", "")
    it = task("regression", pair="other")
    assert it.typed_example(0, {"pair": "B.", "text": "A."}) == TextExample("0", "A.", "B.")


def test_balanced_weights_of_training_rows_are_those_of_scikit_learn():
    names = ("a", "b", "c", "d")
    labels = [0, 0, 0, 0, 2, 2, 3]  # no row has the class 1
    examples = [TextExample(str(row), "A", None, names[label]) for row, label in enumerate(labels)]
    weights = {"none": None, "balanced": [7 / 12] * 4 + [7 / 6] * 2 + [7 / 3]}
    for choice, expected in weights.items():
        it = task(labels=names, class_weights=choice)
        found = it.weights(it.targets(examples))
        assert found is expected or found.dtype == np.float32
        assert expected is None or np.allclose(found, expected, rtol=1e-6)


def classified(names, chosen, sure=0.75):
    """Returns answers: class number `chosen[i]` of two for example i."""
    rest = 1 - sure
    return [
        ClassAnswer(str(id), names[at], sure, {names[at]: sure, names[1 - at]: rest})
        for id, at in enumerate(chosen)
    ]


def labelled(*labels):
    return [TextExample(str(id), f"text {id}", label=label) for id, label in enumerate(labels)]


def test_the_second_of_two_classes_is_answered_from_the_threshold_on(tmp_path):
    examples, probabilities = labelled("no", "yes", "no"), np.array([0.05, 0.3, 0.2])
    it = task(labels=("no", "yes"), threshold=0.25)
    answers = it.read_out(examples, np.stack([1 - probabilities, probabilities], axis=1))
    assert [answer.label for answer in answers] == ["no", "yes", "no"]
    np.testing.assert_allclose([answer.probability for answer in answers], [0.95, 0.3, 0.8])
    assert [answer.label for answer in it.guesses(examples, examples)] == ["no"] * 3
    train = table(tmp_path / "train.tsv", "abc")
    for settings in ({"labels": ("a", "b", "c")}, {"train": train}):
        with pytest.raises(InputError, match="requires two classes.*Received: 3 classes"):
            task(threshold=0.25, **settings).labels  # noqa: B018
    with pytest.raises(InputError, match="`threshold` 0.25 requires a task of classification or"):
        task("regression", threshold=0.25)
    [first] = task("cola").read_out(labelled(None), np.full((1, 2), 0.5))
    assert first == ClassAnswer("0", "0", 0.5, {"0": 0.5, "1": 0.5})  # the first of equals


def test_answers_are_written_line_by_line(tmp_path):
    answers = [ScoreAnswer("1", 0.5), ScoreAnswer("\u2028 \ud800 ä", -1.0)]
    [path] = task("sts-b").write(tmp_path / "new", "dev", labelled(1.5, None), answers)
    assert path == tmp_path / "new" / "predictions-dev.jsonl"
    assert [path] == list((tmp_path / "new").iterdir())
    lines = path.read_text(encoding="utf-8").splitlines()
    first, second = (answer._asdict() for answer in answers)
    assert [json.loads(line) for line in lines] == [first | {"truth": 1.5}, second]


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
        ("2", ("a\tb", "c\n"), "0", "1", 0.9),
        ("1", ("a\tb", "c\n"), "0", "1", 0.6),
    ]
    matrix, names = it.confusion(examples, answers)
    assert matrix.tolist() == [[1, 2], [0, 0]] and names == ("0", "1")
