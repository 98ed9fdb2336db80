"""Texts and pairs: which files are read, what is refused, what a model gets."""

import numpy as np
import pytest

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError


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
        (
            "mnli",
            "classification",
            "accuracy",
            ("dev_matched", "dev_mismatched"),
            ("test_matched", "test_mismatched", "ax"),
            3,
        ),
        ("ax", "classification", "matthews", ("dev_matched", "dev_mismatched"), ("ax",), 3),
    ],
)
def test_glue_tasks_know_what_they_are_without_any_file(name, kind, metric, dev, test, count):
    it = task(name)
    assert (it.kind.name, it.metric, it.dev_splits, it.test_splits) == (kind, metric, dev, test)
    assert it.num_outputs == count and it.max_seq_length == 128
    assert task(name, labels=it.labels).labels == it.labels


def test_own_tasks_know_what_they_are_without_any_file():
    it = task(labels=("b", "a"), max_seq_length=32)
    assert (it.kind.name, it.metric, it.labels, it.num_outputs) == (
        "classification",
        "accuracy",
        ("b", "a"),
        2,
    )
    assert (it.dev_splits, it.test_splits, it.max_seq_length) == (("dev",), (), 32)


def test_ax_is_trained_on_mnli_and_both_answer_it(shared_data, tmp_path):
    data_dir = str(shared_data / "glue")
    for split, rows in (("train", 240), ("dev_matched", 5), ("dev_mismatched", 5)):
        assert len(task("ax", data_dir=data_dir).read(split)) == rows
    write(tmp_path / "diagnostic" / "diagnostic.tsv", "index\tsentence1\tsentence2", "3\tA.\tB.")
    for name in ("ax", "mnli"):
        it = task(name, data_dir=str(tmp_path))
        assert it.read("ax") == [TextExample("3", "A.", "B.")]


def test_given_files_take_the_place_of_official_ones(tmp_path):
    header = "\t".join(["index", *"1234567", "sentence1", "sentence2", "gold_label"])
    row = "\t".join(["7", *"1234567", "A.", "B.", "neutral"])
    path = write(tmp_path / "mine.tsv", header, row)
    for name in ("mnli", "ax"):
        it = task(name, train=path, dev=path)
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


def test_a_development_file_leaves_the_training_file_whole(tmp_path):
    train, dev = table(tmp_path / "train.tsv", "abab"), table(tmp_path / "dev.tsv", "ab")
    it = task(train=train, dev=dev)
    assert [len(it.read(split)) for split in ("train", "dev")] == [4, 2]
    it.read("train").clear()
    assert len(it.read("train")) == 4


@pytest.mark.parametrize("settings", [{"labels": ("a", "b")}, {"train": "train.tsv"}])
def test_unknown_labels_are_told_by_file_and_line(tmp_path, monkeypatch, settings):
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "train.tsv", "ab")
    path = table(tmp_path / "dev.tsv", "abc")
    with pytest.raises(InputError, match="dev.tsv` line 4 has an unknown label, `c`"):
        task(dev=path, **settings).read("dev")


def test_a_file_without_labels_is_laid_out_as_one_with_them(tmp_path):
    path = table(tmp_path / "new.tsv", "ab")
    it = task(text=0, labels=("a", "b"))
    assert [example.first for example in it.read_file(path, labelled=False)] == ["text 0", "text 1"]


def test_an_example_is_made_of_what_was_typed():
    assert task("sst-2").example(3, {"text": "Good."}) == TextExample("3", "Good.")
    assert task("rte").example(0, {"text": "A.", "pair": ""}) == TextExample("0", "A.", "")
    it = task("regression", pair="other")
    assert it.example(0, {"pair": "B.", "text": "A."}) == TextExample("0", "A.", "B.")


def test_real_files_are_laid_out(shared_data, tiny_tokenizer):
    it = task("sst-2", data_dir=str(shared_data / "glue" / "SST-2"))
    examples = it.read("dev")
    features = it.features(examples, tiny_tokenizer)
    batch = features.batch(np.arange(872))
    assert batch["input_ids"].shape == (872, 128)
    assert batch["input_mask"].sum(axis=1).tolist() == features.lengths.tolist()
    guesses = it.guesses(examples, examples)
    assert it.scores(examples, guesses) == {"accuracy": 444 / 872}


def test_balanced_weights_of_training_rows_are_those_of_scikit_learn(tiny_tokenizer):
    names = ("a", "b", "c", "d")
    labels = [0, 0, 0, 0, 2, 2, 3]  # no row has the class 1
    examples = [TextExample(str(row), "A", None, names[label]) for row, label in enumerate(labels)]
    weights = {"none": None, "balanced": [7 / 12] * 4 + [7 / 6] * 2 + [7 / 3]}
    for choice, expected in weights.items():
        it = task(labels=names, class_weights=choice)
        found = it.features(examples, tiny_tokenizer, training=True).weights
        assert found is expected or found.dtype == np.float32
        assert expected is None or np.allclose(found, expected, rtol=1e-6)
        assert it.features(examples, tiny_tokenizer).weights is None
