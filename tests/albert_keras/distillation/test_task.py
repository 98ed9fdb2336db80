"""A distillation on a task is a fine-tuning that learns the answers of a teacher, too."""

import json

import numpy as np
import pytest

from albert_keras.distillation.config import TaskDistillationConfig
from albert_keras.distillation.task import TaughtRows, distill_task
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_rows import TextRows
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from data_pipeline.errors import InputError

ALONE = {"random_baseline": False}


@pytest.fixture(scope="module")
def settings(tiny_corpus, tmp_path_factory):
    """Returns settings of a short training on 40 texts of two classes."""
    folder = tmp_path_factory.mktemp("task")
    for name, texts in (("train", tiny_corpus[:40]), ("dev", tiny_corpus[40:56])):
        rows = [f"{text}\t{'no' if ' a ' in text else 'yes'}" for text in texts]
        (folder / f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    task = {"name": "classification", "text": "text", "label": "label", "max_seq_length": 24}
    task |= {name: str(folder / f"{name}.tsv") for name in ("train", "dev")}
    training = {"steps": 4, "batch_size": 8, "evaluate_every": 4, "report_every": 2}
    training |= {"checkpoint_every": 2, "precision": "float32"}
    return {"task": task, "training": training, "optimizer": {"lr": 1e-3}}


@pytest.fixture(scope="module")
def tuned_teacher(tiny_run, settings, tmp_path_factory, end_at_once):
    """Returns the folder of a fine-tuning that ended where it began."""
    out = tmp_path_factory.mktemp("teacher") / "teacher"
    with end_at_once():
        finetune(tiny_run, out, FinetuneConfig(**settings), **ALONE)
    return out


@pytest.fixture(scope="module")
def student(tiny_run):
    """Returns the shape of a student with half the layers of `tuned_teacher`."""
    return Run.open(tiny_run).albert_config.replace(num_hidden_layers=1)


@pytest.fixture(scope="module")
def taught(tuned_teacher, student, settings, tmp_path_factory):
    """Returns the FinetuneResult of a student."""
    out = tmp_path_factory.mktemp("student") / "student"
    config = TaskDistillationConfig(**settings)
    return distill_task(tuned_teacher, out, config, student=student, **ALONE)


def test_the_result_is_a_fine_tuning_with_a_teacher(taught, tuned_teacher):
    run = Run.open(f"{taught.path}/{taught.seeds[0].path}")
    assert run.kind == "finetuning" and run.albert_config.num_hidden_layers == 1
    data = run.record["data"]
    assert data["teacher"] == f"{tuned_teacher}/seed-12345 step 4"
    assert len(data["teacher_digest"]) == 64
    assert run.record["config"]["distillation"]["temperature"] == 2
    for line in read_log(run.path):
        expected = 0.5 * line["answer_loss"] + 0.5 * line["soft_target_loss"]
        assert line["loss"] == pytest.approx(expected, rel=1e-3)
        assert 0 <= line["soft_target_accuracy"] <= 1
    loaded = json.loads((run.path / "loaded.json").read_text(encoding="utf-8"))
    assert "loaded from" in loaded[0] and "output_weights" in loaded[1]


def test_each_row_has_the_logits_of_its_example(tuned_teacher, settings):
    model, task = open_finetuned(tuned_teacher), task_of(open_run(tuned_teacher))
    examples, predictor = task.read("train"), RowPredictor.of_model(model)
    numbers = np.array([7, 3, 31])
    some = [examples[number] for number in numbers]
    every, few = (
        TextRows(model.preprocessor, task.columns(one), task.targets(one))
        for one in (examples, some)
    )
    found = TaughtRows(every, predictor.predict(every)["logits"]).batch(numbers)
    expected = predictor.predict(few)["logits"]
    np.testing.assert_allclose(found["teacher_logits"], expected, atol=1e-5)
    np.testing.assert_array_equal(found["labels"], every.batch(numbers)["labels"])


def test_a_teacher_of_other_labels_is_refused(
    tuned_teacher, student, settings, tiny_corpus, tmp_path
):
    task = dict(settings["task"])
    for name, texts in (("train", tiny_corpus[:30]), ("dev", tiny_corpus[30:45])):
        rows = [f"{text}\t{number % 3}" for number, text in enumerate(texts)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
        task[name] = str(tmp_path / f"{name}.tsv")
    config = TaskDistillationConfig(**settings | {"task": task})
    with pytest.raises(InputError, match="must have the labels of the task, in their order"):
        distill_task(tuned_teacher, tmp_path / "out", config, student=student, **ALONE)
    assert not (tmp_path / "out" / "seed-12345").exists()
