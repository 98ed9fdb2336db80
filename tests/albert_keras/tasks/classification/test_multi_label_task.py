"""Rows with any number of labels."""

import numpy as np
import pytest
import sklearn.metrics

from albert_keras.models.answers import LabelsAnswer
from albert_keras.tasks.classification.multi_label import best_threshold
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

COLUMNS = ("toxic", "insult", "threat")


def task(**settings):
    usual = {"name": "classification", "text": "text", "label": COLUMNS}
    return build_task(TaskConfig(**usual | settings))


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


ROWS = "You fool,1,1,0\nHello,0,0,0\nI will find you,true,no,YES\nWell,0.0,FALSE,0\n"


def test_columns_of_truth_values_are_labels(tmp_path):
    path = write(tmp_path, "x.csv", "text,toxic,insult,threat\n" + ROWS)
    it = task(train=path, dev=path)
    assert (it.kind, it.metric, it.num_outputs, it.labels) == (
        "multi_label",
        "micro_f1",
        3,
        COLUMNS,
    )
    assert [example.label for example in it.read("train")] == [
        ("toxic", "insult"),
        (),
        ("toxic", "threat"),
        (),
    ]
    assert it.read("dev") == it.read("train")
    named = task(label=(1, 2, 3), text=0, train=path, labels=("a", "b", "c"), dev=path)
    with pytest.raises(InputError, match=r"must have 0 or 1 .* in `1`, .* Received: 'toxic'"):
        named.read("train")
    rows = write(tmp_path, "x.jsonl", '{"text": "A", "toxic": true, "insult": 0, "threat": 1}\n')
    assert task().read_file(rows, labelled=True)[0].label == ("toxic", "threat")


@pytest.mark.parametrize(
    "name, rows",
    [
        ("x.csv", "text,topics\nA,sport| art\nB,\nC,art|\nD,war\n"),
        (
            "x.jsonl",
            '{"text": "A", "topics": ["sport", "art"]}\n{"text": "B", "topics": null}\n'
            '{"text": "C", "topics": "art"}\n{"text": "D", "topics": ["war"]}\n',
        ),
    ],
)
def test_names_in_one_column_are_labels(tmp_path, name, rows):
    path = write(tmp_path, name, rows)
    it = task(label="topics", label_separator="|", train=path, dev=path)
    assert it.labels == ("art", "sport", "war") and it.kind == "multi_label"
    expected = [("art", "sport"), (), ("art",), ("war",)]
    assert [example.label for example in it.read("train")] == expected
    other = write(tmp_path, "other.csv", "text,topics\nA,sport|arts\n")
    with pytest.raises(InputError, match="line 2 has an unknown label, `arts`. Did you mean `art`"):
        it.read_file(other, labelled=True)
    plain = write(tmp_path, "plain.csv", "text\nA\n")
    assert it.read_file(plain, labelled=False) == [TextExample("0", "A")]


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"label_separator": "|"}, "`label_separator` requires one column of names"),
        (
            {"name": "regression", "label": "a", "label_separator": "|"},
            "requires one column of names, not of numbers",
        ),
        ({"labels": ("a", "b")}, "`labels` must have a name for each column of `label`"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        task(**settings)


def examples_of(truth):
    names = [tuple(np.array(COLUMNS)[row == 1].tolist()) for row in truth]
    return [TextExample(str(number), "A", None, label) for number, label in enumerate(names)]


def test_scores_are_those_of_scikit_learn():
    rng, f1 = np.random.default_rng(0), sklearn.metrics.f1_score
    truth = rng.integers(0, 2, (40, 3))
    given = np.where(rng.random((40, 3)) < 0.7, truth, 1 - truth)
    it, examples = task(), examples_of(truth)
    answers = it.read_out(examples, np.where(given, 0.9, 0.2))
    of_labels = f1(truth, given, average=None)
    expected = {
        "micro_f1": f1(truth, given, average="micro"),
        "macro_f1": f1(truth, given, average="macro"),
        "exact_match": sklearn.metrics.accuracy_score(truth, given),
    } | {f"f1_{name}": value for name, value in zip(COLUMNS, of_labels, strict=True)}
    assert it.scores(examples, answers) == pytest.approx(expected)
    assert list(it.scores(examples, answers))[0] == "micro_f1"
    low, high = it.interval(examples, answers)
    assert low < expected["micro_f1"] < high
    assert it.confusion(examples, answers) is None and it.collapse(answers) is None


def test_guesses_are_the_labels_of_most_rows():
    examples = [TextExample(str(n), "A", None, ("toxic", "threat")[: 1 + (n == 0)]) for n in "0123"]
    guesses = task().guesses(examples, examples[:2])
    assert [guess.labels for guess in guesses] == [("toxic",)] * 2
    assert "all 2 answers are `toxic`" == task().collapse(guesses)


def test_errors_have_what_is_too_much_or_missing_and_the_worst_comes_first():
    truth = {"a": ("toxic",), "b": ("threat",), "c": ()}
    examples = [TextExample(id, "A", "B", labels) for id, labels in truth.items()]
    few = {"toxic": 0.1, "insult": 0.1, "threat": 0.2}
    answers = [LabelsAnswer("a", ("toxic", "insult"), few | {"toxic": 0.9, "insult": 0.6})]
    answers += [LabelsAnswer(id, (), few) for id in "bc"]
    found = task().errors(examples, answers)
    assert [error.id for error in found] == ["b", "a"]
    assert found[0][2:] == ("threat", "(none)", pytest.approx(0.8))
    assert found[1][1:] == (("A", "B"), "toxic", "toxic, insult", 0.6)


@pytest.fixture(scope="module")
def rare():
    """Returns truth and probabilities of labels that a cautious model finds with less than 0.5."""
    rng = np.random.default_rng(1)
    truth = (rng.random((400, 3)) < (0.2, 0.1, 0.005)).astype(int)
    probabilities = np.clip(0.1 + 0.2 * truth + rng.normal(0, 0.06, truth.shape), 0.001, 0.999)
    return truth, probabilities


@pytest.mark.parametrize("metric", ["micro_f1", "macro_f1"])
def test_thresholds_have_the_best_f1(metric, rare):
    truth, probabilities = rare
    assert truth[:, 2].sum() < 20  # too few for a threshold of its own
    it, examples = task(metric=metric), examples_of(truth)
    known = it.read_out(examples, probabilities)
    answers, tuned = it.fit_thresholds(examples, known)
    assert it.scores(examples, known)[metric] < 0.1 and it.scores(examples, answers)[metric] > 0.6
    assert [one.labels for one in it.read_out(examples, probabilities, tuned)] == [
        one.labels for one in answers
    ]

    def best(known, given):
        precision, recall, _ = sklearn.metrics.precision_recall_curve(known, given)
        return max(2 * precision * recall / np.maximum(precision + recall, 1e-9))

    found = np.array([tuned[label] for label in COLUMNS])
    columns = [(known, given) for known, given in zip(truth.T, probabilities.T, strict=True)]
    fitted = columns[:2] if metric == "macro_f1" else [(truth.ravel(), probabilities.ravel())]
    for threshold, (known, given) in zip(found, fitted, strict=False):
        score = sklearn.metrics.f1_score(known, given >= threshold)
        assert score == pytest.approx(best(known, given))
    assert best_threshold(truth.ravel(), probabilities.ravel()) == found[2]
    assert (len(set(found)) == 1) == (metric == "micro_f1")


def test_a_threshold_may_be_set_or_stay_a_half(rare):
    truth, probabilities = rare
    assert best_threshold(np.zeros(3, int), np.full(3, 0.3)) == 0.5
    fixed, examples = task(threshold=0.2), examples_of(truth)
    answers, tuned = fixed.fit_thresholds(examples, fixed.read_out(examples, probabilities))
    expected = [tuple(np.array(COLUMNS)[row].tolist()) for row in probabilities >= 0.2]
    assert tuned == {} and [one.labels for one in answers] == expected
