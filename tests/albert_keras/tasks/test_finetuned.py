"""Fine-tuned models that answer, alone and together."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.runs.run import Run
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetuned import (
    FinetunedModels,
    find_runs,
    is_finetuned,
)
from albert_keras.tasks.predict import predict_task
from data_pipeline.errors import InputError

TEXTS = ["The ferry left early.", "Nobody knew why, and nobody asked.", "Rain."]


@pytest.fixture(scope="module")
def tuned(tiny_corpus, tiny_tokenizer, small_shape, end_at_once, tmp_path_factory):
    """Returns the folder of a fine-tuning to two classes, with two seeds that learnt nothing."""
    folder = tmp_path_factory.mktemp("finetuned")
    rows = [f"{text}\t{'ab'[number % 2]}" for number, text in enumerate(tiny_corpus[:40])]
    (folder / "train.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    flags = {"task": "classification", "train": folder / "train.tsv", "text": "text"}
    flags |= {"label": "label", "max_seq_length": 24, "steps": 2, "batch_size": 4}
    with end_at_once():
        finetune(
            "random",
            folder / "out",
            seeds=2,
            albert_config=small_shape.replace(initializer_range=0.5),  # so that they differ
            tokenizer=tiny_tokenizer,
            precision="float32",
            **flags,
        )
    return folder / "out"


@pytest.fixture(scope="module")
def models(tuned):
    """Returns the models of all seeds."""
    return FinetunedModels(tuned, all_seeds=True)


@pytest.fixture
def copy(tuned, tmp_path):
    """Returns a copy of the fine-tuning, to be broken."""
    return shutil.copytree(tuned, tmp_path / "copy")


def runs_of(folder):
    return sorted(folder.glob("seed-*"))


def change_record(run, change):
    record = json.loads((run / "run.json").read_text())
    change(record)
    (run / "run.json").write_text(json.dumps(record))


def probabilities(models, texts=TEXTS):
    answers = models.answers(models.examples(texts))
    return np.array([[answer.probabilities[name] for name in "ab"] for answer in answers])


def test_probabilities_of_several_are_the_mean_of_each(tuned, models):
    one, other = (probabilities(FinetunedModels(run)) for run in runs_of(tuned))
    both = probabilities(models)
    assert np.abs(one - other).max() > 1e-3
    np.testing.assert_allclose(both, (one + other) / 2, rtol=1e-12)


def test_a_fine_tuning_means_its_best_seed(copy):
    results = json.loads((copy / "results.json").read_text())
    results["seeds"][0]["scores"]["dev"]["accuracy"] = 0.25
    results["seeds"][1]["scores"]["dev"]["accuracy"] = 0.75
    (copy / "results.json").write_text(json.dumps(results))
    assert find_runs(copy) == [copy / results["seeds"][1]["path"]]


def change_name(record):
    record["config"]["task"] |= {"name": "pair", "pair": "second"}


def change_labels(record):
    record["config"]["task"]["labels"] = ["a", "c"]


def change_length(record):
    record["config"]["task"]["max_seq_length"] = 8


@pytest.mark.parametrize(
    "change, says",
    [
        (change_length, "Received: `max_seq_length` is 24 in .*, but 8 in"),
        (change_name, "Received: `name` is 'classification' in .*, but 'pair' in"),
        (change_labels, r"Received: `labels` is \['a', 'b'\] in .*, but \['a', 'c'\] in"),
    ],
)
def test_different_tasks_are_refused(tuned, copy, change, says):
    other = runs_of(copy)[1]
    change_record(other, change)
    with pytest.raises(InputError, match=f"must have the same task and tokenizer. {says}"):
        FinetunedModels([runs_of(tuned)[0], other])


def test_a_pre_training_run_is_none(copy):
    run = runs_of(copy)[0]
    change_record(run, lambda record: record.update(kind="pretraining"))
    assert Run.open(run).kind == "pretraining" and not is_finetuned(run)
    with pytest.raises(InputError) as caught:
        FinetunedModels(run)
    assert str(caught.value) == (
        f"`{run}` must be a fine-tuned run. Received: a run of pretraining. Fine-tune it "
        "with `albert-keras finetune`; or, to fill masks, export it with `albert-keras export` and "
        "use the export."
    )


def test_what_was_tuned_is_averaged(copy):
    for run, value in zip(runs_of(copy), (1.0, 4.0), strict=True):
        (run / "tuned.json").write_text(json.dumps({"null_threshold": value}))
    assert FinetunedModels(copy, all_seeds=True).tuned == {"null_threshold": 2.5}


def test_answers_keep_the_ids_of_what_was_asked(models):
    inputs = [{"id": "k7", "text": "Rain."}, "Rain.", {"text": "Rain."}, {"id": 9, "text": "Rain."}]
    answers = models.answers(models.examples(inputs))
    assert [answer.id for answer in answers] == ["k7", "1", "2", "9"]
    assert inputs[0] == {"id": "k7", "text": "Rain."}


def test_typed_texts_and_rows_of_a_file_are_answered_alike(tuned, models, tmp_path):
    (tmp_path / "new.tsv").write_text("\n".join(["body", *TEXTS]) + "\n")
    expected = models.answers(models.examples(TEXTS))
    assert predict_task(tuned, TEXTS, all_seeds=True).answers == expected
    out = tmp_path / "out"
    found = predict_task(tuned, file=tmp_path / "new.tsv", text="body", out=out, all_seeds=True)
    assert found.answers == expected and found.files == (f"{out}/predictions-new.jsonl",)
    lines = (out / "predictions-new.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [one._asdict() for one in expected]
