"""A fine-tuning learns, tells what it found, and begins all or nothing."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from albert_keras.models.text_classifiers import AlbertForClassification
from albert_keras.runs.log_file import read_evaluations, read_log
from albert_keras.runs.run import Run
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.predict import predict_task
from albert_keras.tasks.results import read_results
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from tests.albert_keras.checkpoint_tensors import tensors_of
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import build_model

SEED = 12345


def test_a_toy_is_learnt_and_training_ends_when_nothing_gets_better(tuned_toy):
    (seed,) = tuned_toy.seeds
    majority = tuned_toy.baselines["most frequent answer"]["dev"]["accuracy"]
    assert majority < 0.6 and seed.scores["dev"]["accuracy"] > 0.9
    assert seed.interval.low > majority and seed.interval.high <= 1
    assert seed.collapse is None
    run = Run.open(f"{tuned_toy.path}/{seed.path}")
    log = read_log(run.path)
    assert log[-1]["loss"] < log[0]["loss"] / 2 and log[-1]["answer_accuracy"] > 0.8
    scores = {step: found["accuracy"] for step, found in read_evaluations(run.path)}
    assert list(scores) == list(range(5, seed.last_step + 1, 5))
    assert seed.stopped_early and seed.last_step < 100
    best = max(step for step, score in scores.items() if score == max(scores.values()))
    assert seed.best_step == best == run.checkpoints.best()
    assert seed.scores["dev"]["accuracy"] == scores[best]
    assert run.checkpoints.steps() == [best]


def test_what_is_left_on_disk_is_the_weights_of_the_best_step_once(
    tune, tiny_run, eagerly, end_at_once, tmp_path
):
    words = {"origin": tiny_run, "steps": 2}
    result = tune(tmp_path / "out", **words)
    run = Run.open(tmp_path / "out" / result.seeds[0].path)
    [step] = run.checkpoints.steps()
    weights = tensors_of(run.path, step)
    assert not any("adam" in name or "training/" in name for name in weights)
    large = [path for path in run.path.rglob("*") if path.suffix.startswith(".data-")]
    size = sum(tensor.nbytes for tensor in weights.values())
    assert size <= sum(path.stat().st_size for path in large) < 1.01 * size + 100
    answers = predict_task(tmp_path / "out", ["The harbour ."]).answers
    again = tune(tmp_path / "out", **words)  # trains nothing
    assert (again.baselines, again.seeds[0].scores) == (result.baselines, result.seeds[0].scores)
    assert again.seeds[0].leads == result.seeds[0].leads
    assert predict_task(tmp_path / "out", ["The harbour ."]).answers == answers
    with end_at_once():
        assert tune(tmp_path / "next", origin=tmp_path / "out").loaded


def test_results_are_kept_complete(tuned_toy, toy):
    out = Path(tuned_toy.path)
    assert (tuned_toy.task, tuned_toy.metric) == ("classification", "accuracy")
    assert tuned_toy.origin == "random"
    assert tuned_toy.examples == {"dev": 60} and tuned_toy.seeds[0].seed == SEED
    assert "all 27 weights are random" in tuned_toy.loaded[0]
    (files,) = tuned_toy.files.values()
    listed = {
        path for value in files.values() for path in ([value] if isinstance(value, str) else value)
    }
    names = {"results.json", "errors.tsv", "confusion.png", "predictions-dev.jsonl"}
    assert listed == {str(out / name) for name in names - {"results.json"}}
    assert {path.name for path in out.iterdir()} == {*names, f"seed-{SEED}"}
    answers = [
        json.loads(line) for line in (out / "predictions-dev.jsonl").read_text().splitlines()
    ]
    right = [line.split("\t")[1] for line in (toy / "dev.tsv").read_text().splitlines()[1:]]
    share = np.mean([a["label"] == label for a, label in zip(answers, right, strict=True)])
    assert share == tuned_toy.seeds[0].scores["dev"]["accuracy"]
    assert len((out / "errors.tsv").read_text().splitlines()) == 1 + round(60 * (1 - share))
    majority, words = (one["dev"]["accuracy"] for one in tuned_toy.baselines.values())
    assert words > majority + 0.2
    assert list(tuned_toy.baselines) == ["most frequent answer", "bag of words"]
    assert tuned_toy.seeds[0].leads.keys() == tuned_toy.baselines.keys()
    assert tuned_toy.positive_class == "yes"


def test_a_run_is_begun_from_with_new_heads(tune, untrained, tiny_run, tmp_path, toy_config):
    result = tune(tmp_path / "out", origin=tiny_run, seeds=2)
    assert [seed.seed for seed in result.seeds] == [SEED, SEED + 1]
    assert result.baselines.keys() == result.seeds[0].leads.keys()
    assert result.origin == f"{tiny_run} step 12"
    assert any("output_weights" in line for line in result.loaded)
    pretrained = tensors_of(tiny_run, 12)
    encoder = {name for name in pretrained if name.startswith("bert/") and "/adam_" not in name}
    first, second = (untrained[name] for name in ("seed-12345", "seed-12346"))
    for name in encoder:
        np.testing.assert_array_equal(first[name], pretrained[name])
        np.testing.assert_array_equal(second[name], pretrained[name])
    head = "output_weights"
    assert (first[head] != second[head]).all()
    for folder in ("seed-12345", "seed-12346"):
        assert Run.open(tmp_path / "out" / folder).kind == "finetuning"
    assert read_results(tmp_path / "out") == result


def test_a_head_of_the_same_labels_is_trained_further(
    tuned_toy, tune, untrained, tmp_path, toy_config
):
    tuned = f"{tuned_toy.path}/{tuned_toy.seeds[0].path}"
    result = tune(tmp_path / "out", origin=tuned)
    assert "output_weights" in result.loaded[0]
    assert not any("newly initialized" in line for line in result.loaded)
    best = tensors_of(tuned, tuned_toy.seeds[0].best_step)["output_weights"]
    np.testing.assert_array_equal(untrained[f"seed-{SEED}"]["output_weights"], best)


@pytest.mark.parametrize("name", ["other", "new"])
def test_labels_of_the_same_name_keep_their_part_of_a_head(
    name, tuned_toy, tune, untrained, tmp_path, toy_config
):
    labels = ("yes", "no") if name == "other" else ("maybe", "no", "yes")
    config = toy_config.replace(task=toy_config.task.replace(labels=labels))
    result = tune(tmp_path / "out", config, origin=tuned_toy.path)
    known = tensors_of(f"{tuned_toy.path}/{tuned_toy.seeds[0].path}", tuned_toy.seeds[0].best_step)
    begun = untrained[f"seed-{SEED}"]
    model = AlbertForClassification.from_preset(tuned_toy.path, labels=labels)
    for weight in ("output_weights", "output_bias"):
        kept = known[weight][::-1] if name == "other" else known[weight]
        np.testing.assert_array_equal(begun[weight][-2:], kept)
        np.testing.assert_array_equal(getattr(model.head, weight).numpy()[-2:], kept)
    assert not begun["output_bias"][:-2].any() and begun["output_weights"].any(axis=1).all()
    said = [line for line in result.loaded if line.startswith("the head knows")]
    assert said == (["the head knows 2 of the labels, new are: `maybe`"] if name == "new" else [])


def test_a_head_of_other_labels_is_new(tuned_toy, tune, untrained, tmp_path, toy_config):
    files = {}
    for name in ("train", "dev"):
        text = Path(getattr(toy_config.task, name)).read_text()
        files[name] = str(tmp_path / f"{name}.tsv")
        Path(files[name]).write_text(text.replace("\tyes", "\tja").replace("\tno", "\tnein"))
    config = toy_config.replace(task=toy_config.task.replace(**files))
    result = tune(tmp_path / "out", config, origin=tuned_toy.path)
    assert "newly initialized: output_weights" in result.loaded[1]


def test_the_metric_of_the_best_checkpoint_and_class_weights_are_settings(
    tune, untrained, tmp_path, toy_config
):
    task = toy_config.task.replace(metric="f1", class_weights="balanced")
    result = tune(tmp_path / "out", toy_config.replace(task=task))
    assert result.metric == "f1"
    task = toy_config.task.replace(metric="micro_f1")
    with pytest.raises(InputError, match="no score of this task. Did you mean `macro_f1`"):
        tune(tmp_path / "other", toy_config.replace(task=task))
    for setting in ({"metric": "f1"}, {"class_weights": "balanced"}):
        with pytest.raises(InputError, match="requires a task of classification"):
            build_task(TaskConfig(name="sts-b", **setting))


def test_a_pre_trained_model_is_switched_to_longer_texts(
    tune, untrained, tiny_run, tmp_path, toy_config
):
    changes = {
        "max_position_embeddings": 128,
        "attention": "block-sparse",
        "attention_block_size": 8,
        "attention_random_blocks": 2,
    }
    config = toy_config.replace(
        model=toy_config.model.replace(**changes), task=toy_config.task.replace(max_seq_length=100)
    )
    tune(tmp_path / "out", config, origin=tiny_run)
    run = Run.open(tmp_path / "out" / f"seed-{SEED}")
    assert run.albert_config == Run.open(tiny_run).albert_config.replace(**changes)
    assert run.albert_config.is_sparse_at(100)
    table = "bert/embeddings/position_embeddings"
    begun, pretrained = untrained[run.path.name][table], tensors_of(tiny_run, 12)[table]
    assert begun.shape == (128, 16)
    np.testing.assert_array_equal(begun[:32], pretrained[:32])
    np.testing.assert_array_equal(begun[32:62], pretrained[1:31])


def test_what_cannot_begin_leaves_nothing_and_can_be_mended(
    tune, untrained, toy_config, tiny_tokenizer, tmp_path
):
    out, broken = tmp_path / "out", tmp_path / "broken.keras"
    build_model("classification", SHAPE, 2).save(broken)
    long = toy_config.replace(optimizer=toy_config.optimizer.replace(warmup_steps=101))
    narrow = SHAPE.replace(intermediate_size=32)
    words = {"albert_config": narrow, "tokenizer": tiny_tokenizer}
    for says, arguments in (
        ("warmup_steps` must not exceed the", {"config": long}),
        ("`training.batch_size` must be a multiple", {"accumulation_steps": 3}),
        ("The shapes given for the weights", {"origin": broken, **words}),
    ):
        with pytest.raises(InputError, match=says):
            tune(out, **arguments)
        assert not out.exists() or not list(out.iterdir())
        assert not list(tmp_path.rglob("*.tmp-*"))
    assert tune(out).seeds


def test_a_second_split_is_scored_and_has_a_folder(tune, untrained, tiny_corpus, tmp_path):
    header = ["index", *"abcdefg", "sentence1", "sentence2", "gold_label"]
    rng = random.Random(1)
    for name, count in (("train", 30), ("dev_matched", 12), ("dev_mismatched", 9)):
        rows = [header]
        for number in range(count):
            texts, label = rng.sample(tiny_corpus, 2), rng.choice(["neutral", "entailment"])
            rows.append([str(number), *"-------", *texts, label])
        path = tmp_path / "MNLI" / f"{name}.tsv"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
    words = {"task": "mnli", "data_dir": str(tmp_path), "max_seq_length": 32, "steps": 2}
    result = tune(tmp_path / "out", None, precision="float32", **words)
    assert list(result.examples.items()) == [("dev_matched", 12), ("dev_mismatched", 9)]
    for scores in (result.seeds[0].scores, *result.baselines.values(), result.files):
        assert list(scores) == ["dev_matched", "dev_mismatched"]
    for folder in (tmp_path / "out", tmp_path / "out" / "dev_mismatched"):
        assert {"errors.tsv", "confusion.png"} <= {path.name for path in folder.iterdir()}
    assert read_results(tmp_path / "out") == result
