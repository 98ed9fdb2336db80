"""Scores of fine-tuned models, on examples that chose their checkpoint and on others."""

import shutil

import pytest

from albert_keras.cli.evaluate import describe_task
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import open_finetuned, open_run
from albert_keras.tasks.results import read_results, verdict_of
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.small_tasks import write_squad


def questions(sentences):
    """Yields a question about each sentence; every third has no answer."""
    for number, sentence in enumerate(sentences):
        first, second, *_ = sentence.split()
        answers = (Answer(second, len(first) + 1),) if number % 3 else ()
        yield QuestionExample(f"q{number}", "Which word?", sentence, answers, not answers)


@pytest.fixture(scope="module")
def files(tiny_corpus, tmp_path_factory):
    """Returns a folder with questions: train.json, dev.json, and new.json for nothing else."""
    folder = tmp_path_factory.mktemp("questions")
    for number, name in enumerate(("train", "dev", "new")):
        write_squad(folder / f"{name}.json", *questions(tiny_corpus[number * 30 :][:30]))
    return folder


@pytest.fixture(scope="module")
def tuned(files, tune, end_at_once, tmp_path_factory):
    """Returns the folder of a fine-tuning on the questions that learnt nothing."""
    task = {"name": "squad2", "train": f"{files}/train.json", "dev": f"{files}/dev.json"}
    task |= {"max_seq_length": 48, "max_query_length": 8, "doc_stride": 16}
    training = {"steps": 2, "batch_size": 4, "evaluate_every": 2, "precision": "float32"}
    config = FinetuneConfig(task=task, training=training)
    out = tmp_path_factory.mktemp("evaluated") / "out"
    with end_at_once():
        tune(out, config)
    return out


def test_the_scores_are_those_of_the_fine_tuning(tuned):
    result, evaluation = read_results(tuned), evaluate_task(tuned)
    assert evaluation.scores == pytest.approx(result.seeds[0].scores["dev"], abs=1e-9)
    assert evaluation.interval.low < evaluation.scores["f1"] < evaluation.interval.high
    assert evaluation.thresholds == pytest.approx(result.thresholds)
    assert (evaluation.task, evaluation.split, evaluation.metric) == ("squad2", "dev", "f1")
    assert evaluation.run == f"{tuned}/seed-12345" and evaluation.examples == 30
    assert list(evaluation.scores)[0] == "f1" and evaluation.files == {}
    assert evaluation.has_own_thresholds


def test_on_other_examples_nothing_is_tuned(tuned, files, tmp_path):
    strict = shutil.copytree(tuned, tmp_path / "strict")
    model = open_finetuned(strict)
    model.thresholds = {"null_threshold": -1e9}
    open_run(strict).save_model(model)
    there = evaluate_task(strict, files / "new.json")
    assert not there.has_own_thresholds and there.thresholds == {"null_threshold": -1e9}
    assert there.scores["NoAns_f1"] == 100 and there.scores["HasAns_f1"] == 0
    assert there.collapse == "all 30 answers are no answer" and there.split == "new.json"
    copy = shutil.copy(files / "dev.json", tmp_path / "copy.json")
    assert evaluate_task(strict, copy).has_own_thresholds


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"split": "test"}, "`test` of squad2 has no labels to score. .*use `albert-keras predict"),
        ({"split": "dve"}, "The split `dve` of squad2 is unknown. Did you mean `dev`"),
    ],
)
def test_what_cannot_be_scored_is_refused(tuned, arguments, says):
    with pytest.raises(InputError, match=says):
        evaluate_task(**{"model": tuned, **arguments})


def test_the_verdict_of_the_fine_tuning_needs_no_files_of_the_training(
    tuned_toy, toy, tmp_path, monkeypatch
):
    dev = shutil.copy(toy / "dev.tsv", tmp_path / "copy.tsv")
    monkeypatch.setattr(
        "albert_keras.tasks.classification.task.TextTask.read", lambda *_: pytest.fail("it is gone")
    )
    # A quarter of these texts was trained on, so that there would be no verdict.
    monkeypatch.setattr("albert_keras.tasks.evaluate.check_overlap", lambda *_, **__: None)
    verdict = verdict_of(tuned_toy)
    assert evaluate_task(tuned_toy.path, dev).verdict == verdict
    lines = dev.read_text().splitlines(keepends=True)
    dev.write_text("".join(lines[:40]))
    evaluation = evaluate_task(tuned_toy.path, dev)
    assert evaluation.verdict == (verdict.is_better, f"in the fine-tuning: {verdict.sentence}")
    first, header, model, guess = describe_task(evaluation)[:4]
    assert first == "classification, copy.tsv: 39 examples" and "accuracy" in header
    assert model.startswith("  this model ") and guess.startswith("  always the same answer ")
    moved = shutil.copytree(f"{tuned_toy.path}/{tuned_toy.seeds[0].path}", tmp_path / "moved")
    assert evaluate_task(moved, dev).verdict is None
