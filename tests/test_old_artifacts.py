"""Records, runs and exports of 1.0.0 stay usable, on both lines; see `old_artifacts/README.md`."""

import json
import shutil
from pathlib import Path

import pytest

from tests.differences import differences
from tests.keras_line import IS_KERAS_3
from tests.old_artifacts import LINES, measures, unpack
from tests.parameters import slow

FOLDER = Path(__file__).parent / "old_artifacts"
OWN, OTHER = reversed(LINES) if IS_KERAS_3 else LINES
#: For tests that train: the files of the other line are tried among the slow tests.
own_line_first = pytest.mark.parametrize("line", [OWN, *slow(OTHER)], indirect=True)


@pytest.fixture(scope="module", params=LINES)
def line(request):
    """Returns the line of Keras whose files are read."""
    return request.param


@pytest.fixture(scope="module")
def expected(line):
    """Returns what 1.0.0 read and answered."""
    return json.loads((FOLDER / f"{line}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def unpacked(line, tmp_path_factory):
    """Returns the folder of what 1.0.0 made."""
    return unpack(tmp_path_factory.mktemp("old") / "artifacts", line=line)


@pytest.fixture
def old(unpacked, tmp_path, monkeypatch):
    """Works in a copy of what 1.0.0 made, which the test may change."""
    monkeypatch.chdir(shutil.copytree(unpacked, tmp_path / "old"))


def command(*words):
    """Runs `albert-keras` with some words; it must succeed."""
    from albert_keras.cli import main

    assert main(list(words)) == 0


@pytest.mark.parametrize("name", ["records", "records-roberta"])
def test_records_are_whole_and_read_as_before(old, expected, name):
    from data_pipeline import verify_records

    assert verify_records(name).problems == []
    assert differences(measures.of_records(name), expected[name]) == []


def test_the_tokenizer_cuts_as_before(old, expected):
    for folder in (
        "tokenizer",
        "records/tokenizer",
        "run/tokenizer",
        "saved_models/old/1/tokenizer",
    ):
        assert differences(measures.of_tokenizer(folder), expected["tokenizer"]) == []


@own_line_first
def test_an_interrupted_run_goes_on_and_ends_as_the_undisturbed_one(old, expected, capsys):
    log = Path("run-interrupted/log.jsonl")
    assert len(log.read_text().splitlines()) == 4
    command(*measures.PRETRAIN, "run-interrupted")
    assert "step 8 after" in capsys.readouterr().out
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert differences(measures.of_log(lines), expected["log"]) == []
    checkpoint = measures.of_checkpoint("run-interrupted/checkpoints/step-00000008/model.ckpt")
    assert differences(checkpoint, expected["checkpoint"]) == []


@own_line_first
def test_a_run_scores_as_before(old, expected):
    found = measures.of_evaluation("run", "records", allow_trained_rows=True)
    assert differences(found, expected["evaluation"]) == []
    assert found["overlap"]["normalised"] == found["num_records"]


def test_the_keras_file_loads(old, expected):
    found = measures.of_keras_model("saved_models/old/model-1.keras")
    assert differences(found, expected["keras"]) == []


def test_the_saved_model_answers_as_before(old, expected):
    found = measures.of_pretrained_export("saved_models/old")
    assert differences(found, expected["export"]) == []


@pytest.mark.slow
def test_the_run_is_exported_as_the_next_version(old, expected):
    """The old version lies beside the new one."""
    from albert_keras import export

    result = export("run", "saved_models/old")
    assert (result.version, result.step) == (2, 8)
    assert differences(measures.of_pretrained_export(result.path), expected["export"]) == []
    assert differences(measures.of_keras_model(result.keras_file), expected["keras"]) == []


@own_line_first
def test_the_finetuned_run_answers_as_before(old, expected):
    assert differences(measures.of_finetuned_run("finetuned"), expected["answers"]) == []
    found = measures.of_task_evaluation("finetuned", "dev.csv")
    assert differences(found, expected["task_evaluation"]) == []


@own_line_first
def test_a_finished_finetuning_is_not_done_again(old, expected):
    from albert_keras.runs.tensors import is_moment
    from tests.albert_keras.checkpoint_tensors import tensors_of

    before = tensors_of("finetuned/seed-5", 80)
    command(*measures.FINETUNE)
    seed = json.loads(Path("finetuned/results.json").read_text(encoding="utf-8"))["seeds"][0]
    assert differences(seed["scores"], expected["scores"]) == []
    assert seed["best_step"] == expected["best_step"]
    after = tensors_of("finetuned/seed-5", 80)  # the weights are left
    assert all((after[name] == before[name]).all() for name in after)
    assert not any(map(is_moment, after))


def test_the_finetuned_saved_model_answers_as_before(old, expected):
    found = measures.of_finetuned_export("saved_models/old-topics")
    assert differences(found, expected["exported_answers"]) == []
