"""Texts and pairs: which files are read, what is refused, what a model gets."""

import numpy as np
import pytest

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.classification.task import TextTask
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

RTE = "index\tsentence1\tsentence2\tlabel\n"


def task(name="classification", **settings):
    if name not in GLUE_TASKS:
        settings = {"text": "text", "label": "label"} | settings
    return TextTask(TaskConfig(name=name, **settings))


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
    score = task("regression")
    assert (score.kind.name, score.metric, score.labels, score.num_outputs) == (
        "regression",
        "pearson",
        (),
        1,
    )


@pytest.mark.parametrize("inside", ["", "RTE", "RTE/"])
def test_the_folder_may_be_that_of_the_task(tmp_path, inside):
    write(tmp_path / "RTE" / "dev.tsv", RTE + "7\tA.\tB.\tentailment")
    it = task("rte", data_dir=f"{tmp_path}/{inside}")
    assert it.read("dev") == [TextExample("7", "A.", "B.", "entailment")]


def test_the_folder_of_another_task_is_refused_though_its_test_file_fits(tmp_path):
    write(tmp_path / "WNLI" / "test.tsv", RTE.replace("\tlabel", "") + "7\tA.\tB.")
    assert len(task("wnli", data_dir=str(tmp_path)).read("test")) == 1
    with pytest.raises(InputError, match="does not exist.* or `RTE` itself"):
        task("rte", data_dir=str(tmp_path / "WNLI")).read("test")


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


def test_three_rows_are_enough_and_one_text_is_not(tmp_path):
    it = task(train=table(tmp_path / "train.tsv", "aba"))
    assert it.read("train") and it.read("dev")
    path = write(tmp_path / "same.tsv", "text\tlabel", "same\ta", "same\tb")
    for split in ("train", "dev"):
        with pytest.raises(InputError, match="at least two different texts"):
            task(train=path).read(split)


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


@pytest.mark.parametrize(
    "settings, split, says",
    [
        ({"name": "rte"}, "dev", "`data_dir` must be the folder with the files of rte"),
        ({"name": "rte", "data_dir": "."}, "dev_matched", "split `dev_matched` of rte is unknown"),
        ({}, "train", "`train` must be the training file"),
        ({}, "test", "split `test` of classification is unknown"),
        ({"train": "x.tsv", "label": None}, "train", "`label` must name the column"),
    ],
)
def test_what_is_missing_is_told(settings, split, says):
    with pytest.raises(InputError, match=says):
        task(**settings).read(split)


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"name": "cola", "text": 0}, "`text` must not be given: cola has its own columns"),
        ({"name": "cola", "labels": ("1", "0")}, "`labels` of cola must be 0, 1"),
        ({"name": "regression", "labels": ("1", "0")}, "`labels` of regression must be none"),
        ({"labels": ("a",)}, "`labels` must be at least two, all different"),
        ({"labels": ("a", "b", "a")}, "`labels` must be at least two, all different"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, says):
    with pytest.raises(InputError, match=says):
        task(**settings)


def test_an_example_is_made_of_what_was_typed():
    assert task("sst-2").example(3, {"text": "Good."}) == TextExample("3", "Good.")
    assert task("rte").example(0, {"text": "A.", "pair": ""}) == TextExample("0", "A.", "")
    it = task("regression", pair="other")
    assert it.example(0, {"pair": "B.", "text": "A."}) == TextExample("0", "A.", "B.")


@pytest.mark.parametrize(
    "name, fields, says",
    [
        (
            "sst-2",
            {"text": "A.", "pair": "B."},
            "An example of sst-2 must have `text`. Received: text, pair",
        ),
        ("sst-2", {"text": "A.", "texts": "B."}, "must have `text`. Received: text, texts"),
        ("sst-2", {}, "must have `text`. Received: nothing"),
        ("sst-2", {"text": 7}, "`text` must be a text. Received: 7"),
        ("sst-2", {"text": " \n"}, "`text` must be a text. It is blank"),
        (
            "rte",
            {"text": "A."},
            r"An example of rte must have `text` and `pair` \(--pair\). Received: text",
        ),
    ],
)
def test_fields_that_cannot_be_used_are_refused(name, fields, says):
    with pytest.raises(InputError, match=says):
        task(name).example(0, fields)


def test_scores_are_learnt_as_floats_and_nothing_where_there_is_none(tiny_tokenizer):
    examples = [TextExample("0", "so", "but", 2.5), TextExample("1", "so", "but")]
    it = task("sts-b")
    batch = it.features(examples[:1], tiny_tokenizer, training=True).batch([0])
    assert batch["labels"].dtype == np.float32 and batch["labels"].tolist() == [2.5]
    assert "labels" not in it.features(examples, tiny_tokenizer).batch([0])
    with pytest.raises(InputError, match="Example 1 must have a label. It has none."):
        it.features(examples, tiny_tokenizer, training=True)


def test_real_files_are_laid_out(shared_data, tiny_tokenizer):
    it = task("sst-2", data_dir=str(shared_data / "glue" / "SST-2"))
    examples = it.read("dev")
    features = it.features(examples, tiny_tokenizer)
    batch = features.batch(np.arange(872))
    assert batch["input_ids"].shape == (872, 128)
    assert batch["input_mask"].sum(axis=1).tolist() == features.lengths.tolist()
    guesses = it.guesses(examples, examples)
    assert it.scores(examples, guesses) == {"accuracy": 444 / 872}
