"""Similarity: which files are read for which objective, and how answers are scored."""

import numpy as np
import pytest

from albert_keras.models.answers import ScoreAnswer
from albert_keras.tasks.baselines import tfidf_cosines
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

ROWS = [
    ("A ferry left.", "A boat departed.", 4.5),
    ("Rain fell.", "A ferry left.", 0.5),
    ("Rain fell.", "It rained.", 4.0),
]
COLUMNS = {"text": "a", "pair": "b", "label": "c"}


@pytest.fixture
def files(tmp_path):
    """Returns a folder with pairs.tsv, with scores."""
    lines = ["\t".join(map(str, row)) for row in ROWS]
    (tmp_path / "pairs.tsv").write_text("\n".join(["a\tb\tc", *lines]) + "\n")
    return tmp_path


def task_of(files, **settings):
    for name in ("train", "dev"):
        if name in settings:
            settings[name] = str(files / settings[name])
    return build_task(TaskConfig(name="similarity", **settings))


@pytest.mark.parametrize(
    "settings, objective, first",
    [
        ({"train": "pairs.tsv", "text": "a", "pair": "b"}, "pairs", ("0", *ROWS[0][:2], None)),
        ({"train": "pairs.tsv", "dev": "pairs.tsv"} | COLUMNS, "scores", ("0", *ROWS[0])),
    ],
)
def test_the_objective_follows_from_the_files_and_columns(files, settings, objective, first):
    task = task_of(files, **settings)
    assert task.objective == objective
    assert task.read("train")[0] == first


def test_development_examples_are_pairs_with_scores(files):
    task = task_of(files, train="pairs.tsv", objective="pairs", dev="pairs.tsv", **COLUMNS)
    assert [one.label for one in task.read("dev")] == [row[2] for row in ROWS]
    held = task_of(files, train="pairs.tsv", dev_share=0.4, **COLUMNS)
    assert len(held.read("train")) + len(held.read("dev")) == 3 and held.read("dev")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"train": "pairs.tsv", "text": "a", "pair": "b"}, "development pairs with scores"),
        ({"dev": "pairs.tsv", "text": "a"}, "`pair` must name the column of the second text"),
    ],
)
def test_what_is_missing_is_named(files, settings, message):
    with pytest.raises(InputError, match=message):
        task_of(files, **settings).read("dev")


def test_answers_are_scored_by_their_order(files):
    task = task_of(files, train="pairs.tsv", dev="pairs.tsv", **COLUMNS)
    examples = task.read("dev")
    answers = task.read_out(examples, np.float32([0.9, 0.1, 0.2])[:, None])
    assert answers[0] == ScoreAnswer("0", pytest.approx(0.9))
    scores = task.scores(examples, answers)
    assert list(scores) == ["spearman", "pearson"] and scores["spearman"] == 1
    worse = task.read_out(examples, np.float32([0.1, 0.2, 0.9])[:, None])
    assert task.scores(examples, worse)["spearman"] == pytest.approx(-0.5)
    assert task.errors(examples, worse)[0].id == "0"
    assert task.collapse(answers) is None
    same = task.read_out(examples, np.full((3, 1), 0.5))
    assert task.collapse(same) == "all 3 answers are 0.5"
    assert task.guesses(examples, examples) is None


def test_tfidf_compares_words():
    pairs = [("a red ferry", "red ferry"), ("red", "blue"), ("red ferry", "red boat"), ("?", "!")]
    examples = [TextExample("0", *pair) for pair in pairs]
    found = tfidf_cosines(["red ferry", "red boat", "blue boat"], examples)
    assert found[0] == pytest.approx(1) and found[1] == 0 and 0 < found[2] < 1 and found[3] == 0
    assert not tfidf_cosines(["?"], examples).any()
