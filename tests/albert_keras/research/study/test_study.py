"""A study from text to report: what is shared, reused and resumed."""

import csv
import json
import shutil

import pytest

from albert_keras.research.study import (
    report as report_module,
    study as study_module,
    training as training_module,
)
from albert_keras.research.study.config import StudyConfig
from albert_keras.research.study.study import study
from albert_keras.training.saving import SaveCheckpoints
from data_pipeline.errors import InputError
from tests.albert_keras.research.study.conftest import MICRO

#: What a fake training and a fake evaluation return, so that the order of the work is tested.
_TRAINED = {"updates": 6, "batch_size": 8, "parameters": 1000, "diverged_at": None}
_SCORES = {
    "masked_lm_accuracy": 0.3,
    "masked_lm_loss": 4.0,
    "predictions": 1000,
    "constant_guess": 0.06,
    "sentence_accuracy": 0.6,
    "sentences": 500,
    "chance": 0.51,
    "trained_on": 0,
}


def use_fakes(monkeypatch):
    """Replaces training, scoring and drawing by fakes; returns a list of the trainings made."""
    made = []

    def train(job, path):
        teacher = None if job.teacher is None else job.teacher.folder.name
        made.append((job.run.name, job.seed, teacher))
        return _TRAINED | {"curve": [[3, 0.1], [6, 0.2 + job.seed / 100]], "seconds": 1.0}

    monkeypatch.setattr(training_module, "_trained", train)
    monkeypatch.setattr(training_module, "_score", lambda path, records: dict(_SCORES))
    monkeypatch.setattr(report_module, "draw_pictures", lambda folder, findings: [])
    return made


@pytest.fixture
def trained(monkeypatch):
    """Uses fakes; returns the list of trainings that are made."""
    return use_fakes(monkeypatch)


@pytest.fixture(scope="session")
def finished_study(study_text, made_once):
    """Returns the folder of a study that is finished, with fakes in place of trainings."""

    def make(folder):
        with pytest.MonkeyPatch.context() as patch:
            use_fakes(patch)
            study(StudyConfig(**MICRO), study_text, folder)

    return made_once("finished-study", make)


@pytest.fixture
def out(finished_study, tmp_path):
    """Returns a copy of the folder of the finished study."""
    return shutil.copytree(finished_study, tmp_path / "study")


@pytest.fixture
def untrained(out):
    """Returns a copy of the folder with vocabulary and records, and without trainings."""
    shutil.rmtree(out / "runs")
    return out


def files_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_finished_trainings_are_used_again(micro_study, study_text, trained, out):
    report = files_of(out / "report")
    same = study(micro_study(), study_text, out)
    assert (same.trainings, same.trained_here) == (2, 0)
    assert files_of(out / "report") == report and trained == []
    # A second seed, a run with another name, and one with another setting.
    runs = [MICRO["runs"][0] | {"name": "no task"}, {"name": "faster", "optimizer": {"lr": 0.01}}]
    more = study(micro_study(runs=runs), study_text, out, seeds=2)
    assert trained == [("faster", 1, None), ("no task", 2, None), ("faster", 2, None)]
    assert (more.trainings, more.trained_here) == (4, 3)
    # Vocabulary and records, for training and held out, with and without labels, were shared.
    assert len(list((out / "vocabularies").iterdir())) == 1
    assert len(list((out / "records").iterdir())) == 4


def test_new_evaluations_need_no_new_training(micro_study, study_text, trained, out):
    evaluate = MICRO["evaluate"] | {"nsp": {"title": "NSP", "data": {"objective": "nsp"}}}
    result = study(micro_study(evaluate=evaluate), study_text, out)
    assert trained == []
    assert "| NSP " in result.report.read_text(encoding="utf-8")


def test_a_teacher_is_trained_before_its_students(micro_study, study_text, trained, untrained):
    runs = [
        {"name": "student", "teacher": "large", "distillation": {"cosine_weight": 0.0}},
        {"name": "large", "model": {"num_hidden_layers": 3}},
    ]
    study(micro_study(runs=runs), study_text, untrained)
    (large, _, none), (student, _, teacher) = trained
    assert (large, none, student) == ("large", None, "student")
    assert teacher.startswith("large-seed-1-")


def test_the_report_sets_our_scores_beside_the_published_ones(finished_study):
    folder = finished_study / "report"
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "[Nobody et al., table 1](https://example.org/)" in text
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "| SOP | 0.00 million | 6 | 1 | 30.0 % | +0.0 ≈ | 60.0 % | +0.0 ≈ | 86.5 |" in rows
    assert "no pair differs by more than the noise" in text
    assert "albert-tiny with 2 layers of 32, a vocabulary of 300 pieces, records of 32" in text
    assert "fixed masks: masked LM (1,000 masked tokens), SOP (500 pairs)." in text
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert len(rows) == 2 * 2 * 3


def test_diverged_runs_and_labels_that_are_nearly_all_the_same_are_reported(
    micro_study, study_text, trained, out
):
    for path in (out / "runs").glob("*/result.json"):
        values = json.loads(path.read_text())
        values["scores"]["sop"]["chance"] = 0.9
        values["diverged_at"] = 4 if values["run"] == "SOP" else None
        path.write_text(json.dumps(values))
    report = study(micro_study(), study_text, out).report.read_text(encoding="utf-8")
    assert trained == []
    assert "Diverged, and left out: SOP, seed 1, at update 4." in report
    assert "90 % of the records of SOP have the same label" in report


def test_a_folder_keeps_its_study(micro_study, study_text, trained, out):
    other = "title 'Another' instead of.*, scale 'mini' instead of 'tiny', minutes 3 instead of"
    with pytest.raises(InputError, match=other):
        study(micro_study(title="Another"), study_text, out, scale="mini", minutes=3)


def test_other_folders_are_refused(micro_study, study_text, tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InputError, match="is not empty, and nothing is ever overwritten"):
        study(micro_study(), study_text, tmp_path)
    with pytest.raises(InputError, match="must not be the text of `corpus`"):
        study(micro_study(), study_text, tmp_path / "o", eval_corpus=study_text)
    assert not (tmp_path / "o").exists()
    with pytest.raises(InputError, match="`seeds` must be at least 1"):
        study(micro_study(), study_text, tmp_path / "o2", seeds=0)


def test_minutes_decide_the_updates_once(micro_study, study_text, trained, monkeypatch, untrained):
    measured = []

    def measure(planned, materials):
        measured.append([run.name for run in planned.runs])
        return {run.name: 0.5 for run in planned.runs}

    monkeypatch.setattr(study_module, "measure_seconds", measure)
    path = untrained / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"minutes": 0.1}))
    for _ in range(2):
        study(micro_study(), study_text, untrained, minutes=0.1)
    assert measured == [["none", "SOP"]] and len(trained) == 2
    assert json.loads(path.read_text())["updates"] == {"none": 12, "SOP": 12}


def test_a_share_of_the_text_is_part_of_a_larger_one(study_text, tmp_path):
    from albert_keras.research.study.materials import prepare_corpus, share_of
    from data_pipeline.text.corpus import read_corpus

    corpus = prepare_corpus(tmp_path, [str(study_text)], (), "auto")
    shares = []
    for share in (0.1, 0.5):
        part = share_of(tmp_path, corpus.training, share)
        shares.append({document.text for document in read_corpus(part.sources, part.format)})
    held_out = {document.text for document in read_corpus(corpus.held_out.sources, "jsonl")}
    assert 1 <= len(shares[0]) < len(shares[1]) and shares[0] < shares[1]
    assert not held_out & shares[1]


@pytest.mark.slow
def test_one_training_is_real(micro_study, study_text, untrained):
    result = study(
        micro_study(runs=MICRO["runs"][1:], evaluate={"sop": MICRO["evaluate"]["sop"]}),
        study_text,
        untrained,
        changes={"training": {"steps": 2}},
    )
    rows = list(csv.DictReader((result.report.parent / "scores.csv").read_text().splitlines()))
    values = {row["score"]: float(row["value"]) for row in rows}
    assert values.keys() == {"masked_lm_accuracy", "masked_lm_loss", "sentence_accuracy"}
    assert 4 < values["masked_lm_loss"] < 8 and rows[0]["updates"] == "2"
    # Sentences of this corpus share their halves: a few short records occur in both parts.
    assert int(rows[0]["trained_on"]) < 5
    assert {"scores.png", "curves.png"} <= {path.name for path in result.report.parent.iterdir()}


@pytest.mark.slow
def test_a_study_that_broke_off_goes_on_to_the_same_report(
    micro_study, study_text, untrained, tmp_path
):
    one = micro_study(runs=MICRO["runs"][1:], evaluate={"sop": MICRO["evaluate"]["sop"]})
    whole = shutil.copytree(untrained, tmp_path / "whole")
    study(one, study_text, whole)
    on_batch_end = SaveCheckpoints.on_train_batch_end

    def crash(self, batch, logs=None):
        if self.progress.step == 5:  # after the checkpoint of step 4
            raise MemoryError("a crash")
        on_batch_end(self, batch, logs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SaveCheckpoints, "on_train_batch_end", crash)
        with pytest.raises(MemoryError):
            study(one, study_text, untrained)
    assert list(untrained.glob("runs/sop-*/run/checkpoints/step-00000004"))
    assert not list(untrained.glob("runs/sop-*/result.json"))
    study(one, study_text, untrained)
    assert files_of(untrained / "report") == files_of(whole / "report")


@pytest.mark.slow
def test_students_are_trained(micro_study, study_text, tmp_path):
    runs = [
        {"name": "teacher", "model": {"num_hidden_layers": 2, "sharing": "none"}},
        {"name": "student", "teacher": "teacher", "model": {"num_hidden_layers": 1}},
    ]
    study_config = micro_study(runs=runs, equal="time")
    result = study(study_config, study_text, tmp_path / "study", minutes=0.01)
    assert result.trainings == 2
