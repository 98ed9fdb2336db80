"""Records that were trained on are never scored as held-out ones in silence."""

import shutil

import pytest

from albert_keras.cli import main
from albert_keras.dry_run import dry_run
from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.log_file import read_evaluations
from albert_keras.runs.trained_data import RECORDS, check_overlap, read_digests
from albert_keras.serving.export.model_card import model_card
from albert_keras.serving.export.source import open_source
from albert_keras.training import trained_records
from albert_keras.training.evaluate import evaluate
from albert_keras.training.pretrain import pretrain
from albert_keras.training.trained_records import digests_of, training_digests
from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.records.record_files import RecordFiles
from tests.albert_keras.serving.card_records import PRETRAINED


@pytest.fixture(scope="module")
def build(tiny_tokenizer, tiny_data_config, tmp_path_factory):
    def build(documents, **settings):
        out = tmp_path_factory.mktemp("records") / "records"
        config = tiny_data_config.replace(**settings)
        return build_records(documents, tiny_tokenizer, out, config).path

    return build


@pytest.fixture
def run(tiny_run, tmp_path):
    return shutil.copytree(tiny_run, tmp_path / "run")


def compared(folder, trained):
    return check_overlap(trained, digests_of(RecordFiles(folder)), RECORDS, str(folder))


def test_the_records_of_the_training_are_refused(tiny_records, tiny_training, tmp_path):
    for attempt in (pretrain, dry_run):
        with pytest.raises(InputError, match="696 of 696 records of .* were trained on"):
            attempt(tiny_records, tmp_path / "run", tiny_training, eval_data=tiny_records)
        assert not (tmp_path / "run").exists()


def test_the_records_of_a_run_are_not_evaluated_unless_it_is_allowed(run, tiny_records, capsys):
    command = ["evaluate", "--run", str(run), "--data", str(tiny_records)]
    assert main(command) == 2
    assert "must have records that" in capsys.readouterr().err
    assert main([*command, "--allow-trained-rows"]) == 0
    shown = capsys.readouterr().out
    assert (
        shown.startswith("training score: step 12") and "696 of 696 records were trained" in shown
    )


@pytest.mark.parametrize("settings", [{"static_masks": False}, {"num_shards": 1}])
def test_the_same_texts_in_other_files_are_refused(run, build, tiny_documents, settings):
    again = build(tiny_documents, copies=1, **settings)
    with pytest.raises(InputError, match="must have records that .* was not trained on"):
        evaluate(run, again)


def test_some_records_are_counted_in_output_and_log(run, mixed_records, capsys):
    assert main(["evaluate", "--run", str(run), "--data", str(mixed_records)]) == 0
    shown = capsys.readouterr()
    overlap = read_evaluations(run)[-1][1]["overlap"]
    assert 0 < overlap["normalised"] < overlap["rows"]
    sentence = f"{overlap['normalised']} of {overlap['rows']} records were trained on"
    assert sentence in shown.out.splitlines()
    assert f"{overlap['normalised']} of {overlap['rows']} records of `{mixed_records}`" in shown.err
    assert "their score is not a held-out score." in shown.err


def test_without_digests_it_is_unknown_and_they_can_be_added(
    run, tiny_records, mixed_records, tiny_training, caplog
):
    shutil.rmtree(run / "trained_on")
    assert evaluate(run, mixed_records).overlap is None
    assert "It is unknown whether" in caplog.text
    record = PRETRAINED | {"scores": open_source(run).describe()["scores"]}
    card = " ".join(model_card("books", record).split())
    assert "It is unknown whether the model was trained on some of them." in card
    assert "held-out" not in card
    assert pretrain(tiny_records, run, tiny_training).resumed_from == 12
    assert compared(mixed_records, read_digests(run, RECORDS)).normalised > 0


def test_records_of_the_initial_weights_count(
    tiny_run, tiny_records, held_out_records, tiny_training, tmp_path
):
    initial = open_weights(tiny_run)
    trained = training_digests([RecordFiles(held_out_records)], tmp_path / "run", initial)
    assert len(trained.fingerprints) == 2
    with pytest.raises(InputError, match="696 of 696 records"):
        compared(tiny_records, trained)


def test_of_many_records_a_sample_is_kept(
    tiny_records, mixed_records, held_out_records, tmp_path, monkeypatch
):
    monkeypatch.setattr(trained_records, "KEPT_RECORDS", 512)
    trained = training_digests([RecordFiles(tiny_records)], tmp_path)
    assert len(trained.values) <= 512 and trained.is_sample
    overlap = compared(mixed_records, trained)
    assert overlap.is_estimate and 0 < overlap.normalised < overlap.rows
    assert compared(held_out_records, trained).normalised == 0
    with pytest.raises(InputError, match="696 of 696 records"):
        compared(tiny_records, trained)
