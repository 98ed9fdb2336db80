"""Scores of fine-tuned models, on examples that chose their checkpoint and on others."""

import json
import shutil

import pytest

from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.results import read_results
from data_pipeline.errors import InputError


def write_questions(path, sentences):
    """Writes a question about each sentence; every third has no answer."""
    questions = []
    for number, sentence in enumerate(sentences):
        is_impossible = number % 3 == 0
        answer = {"text": sentence.split()[1], "answer_start": len(sentence.split()[0]) + 1}
        question = {"id": f"q{number}", "question": "Which word?", "is_impossible": is_impossible}
        question["answers"] = [] if is_impossible else [answer]
        questions.append({"context": sentence, "qas": [question]})
    data = [{"title": "sentences", "paragraphs": questions}]
    path.write_text(json.dumps({"version": "v2.0", "data": data}))
    return path


@pytest.fixture(scope="module")
def files(tiny_corpus, tmp_path_factory):
    """Returns a folder with questions: train.json, dev.json, and new.json for nothing else."""
    folder = tmp_path_factory.mktemp("questions")
    for number, name in enumerate(("train", "dev", "new")):
        write_questions(folder / f"{name}.json", tiny_corpus[number * 30 :][:30])
    return folder


@pytest.fixture(scope="module")
def tuned(files, tiny_tokenizer, small_shape, end_at_once, tmp_path_factory):
    """Returns the folder of a fine-tuning on the questions that learnt nothing."""
    task = {"name": "squad2", "train": f"{files}/train.json", "dev": f"{files}/dev.json"}
    task |= {"max_seq_length": 48, "max_query_length": 8, "doc_stride": 16}
    training = {"steps": 2, "batch_size": 4, "evaluate_every": 2, "precision": "float32"}
    config = FinetuneConfig(task=task, training=training)
    out = tmp_path_factory.mktemp("evaluated") / "out"
    with end_at_once():
        finetune("random", out, config, albert_config=small_shape, tokenizer=tiny_tokenizer)
    return out


@pytest.fixture(scope="module")
def evaluation(tuned):
    """Returns the Evaluation on the examples that chose the checkpoint."""
    return evaluate_task(tuned)


@pytest.fixture
def strict(tuned, tmp_path):
    """Returns a copy that was tuned to answer nothing."""
    copy = shutil.copytree(tuned, tmp_path / "strict")
    for path in copy.glob("*/tuned.json"):
        path.write_text(json.dumps({"null_threshold": -1e9}))
    return copy


def test_the_scores_are_those_of_the_fine_tuning(tuned, evaluation):
    result = read_results(tuned)
    assert evaluation.scores == pytest.approx(result.seeds[0].scores["dev"], abs=1e-9)
    assert evaluation.interval == pytest.approx(result.seeds[0].interval)
    assert evaluation.tuned == pytest.approx(result.tuned)
    assert (evaluation.task, evaluation.split, evaluation.metric) == ("squad2", "dev", "f1")
    assert evaluation.run == f"{tuned}/seed-12345" and evaluation.examples == 30
    assert list(evaluation.scores)[0] == "f1" and evaluation.files == {}


def test_only_on_examples_that_chose_the_checkpoint_anything_is_tuned(strict, files):
    here = evaluate_task(strict)
    assert here.is_tuned_here and here.tuned["null_threshold"] > -1e9
    there = evaluate_task(strict, files / "new.json")
    assert not there.is_tuned_here and there.tuned == {"null_threshold": -1e9}
    assert there.scores["NoAns_f1"] == 100 and there.scores["HasAns_f1"] == 0
    assert there.collapse == "all 30 answers are no answer" and there.split == "new.json"


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"data": "x.json", "split": "dev"}, "Only one of `data` and `split` may be given"),
        ({"data": "x.json", "data_dir": "d"}, "Only one of `data` and `data_dir` may"),
        ({"data": "x.json"}, "x.json"),
        (
            {"split": "test"},
            "`test` of squad2 has no labels to score. .*use `albert-keras predict .*/",
        ),
        ({"split": "dve"}, "The split `dve` of squad2 is unknown. Did you mean `dev`"),
        ({"out": "/proc/nowhere"}, "cannot be written"),
    ],
)
def test_what_cannot_be_scored_is_refused(tuned, arguments, says):
    with pytest.raises(InputError, match=says):
        evaluate_task(**{"run": tuned, **arguments})
