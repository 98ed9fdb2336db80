"""`albert-keras data build` as a user runs it: on this machine, in processes, by Apache Beam."""

import json
import sys

import pytest

from albert_keras.cli import main
from data_pipeline.building import beam as beam_module
from data_pipeline.building.folder import BuildResult
from tests.data_pipeline.building.test_interrupted_build import bytes_of


@pytest.fixture
def command(tmp_path, tiny_corpus, tiny_vocabulary):
    """Returns the command without `--out`, for 12 text files."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(12):
        text = "\n\n".join(tiny_corpus[number * 29 : number * 29 + 29])
        (corpus / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    command = ["data", "build", "--corpus", f"{corpus}/*.txt"]
    return [*command, "--tokenizer", str(tiny_vocabulary.path), "--max-seq-length", "32"]


@pytest.fixture
def passed_to_beam(monkeypatch, tiny_records):
    """Returns a dict of what a command hands to Apache Beam, which does not run."""
    from data_pipeline.records.dataset_info import DatasetInfo

    passed = {}

    def build_with_beam(corpus, tokenizer, out, config, corpus_format, beam_options):
        passed.update(corpus=corpus, out=out, options=beam_options)
        return BuildResult(out, DatasetInfo.read(tiny_records), 1.0, 0)

    monkeypatch.setattr(beam_module, "build_with_beam", build_with_beam)
    return passed


def test_the_bytes_do_not_depend_on_the_workers(command, tmp_path, monkeypatch):
    monkeypatch.setattr("data_pipeline.building.encoding._SMALLEST_PART", 4000)
    command += ["--num-shards", "3"]
    assert main([*command, "--out", f"{tmp_path}/one", "--workers", "1"]) == 0
    assert main([*command, "--out", f"{tmp_path}/two", "--workers", "2"]) == 0
    assert len(list((tmp_path / "one").glob("*.tfrecord"))) == 3
    assert bytes_of(tmp_path / "two") == bytes_of(tmp_path / "one")


def test_a_preset_decides_what_no_option_does(command, tmp_path):
    command += ["--preset", "reference", "--set", "masking.max_ngram=2"]
    assert main([*command, "--out", f"{tmp_path}/out"]) == 0
    info = json.loads((tmp_path / "out" / "dataset_info.json").read_text())
    assert info["max_predictions_per_seq"] == 20 and info["max_seq_length"] == 32
    config, masking = info["config"], info["config"]["masking"]
    assert config["copies"] == 40 and config["short_sequences"] == "document"
    assert config["single_sentence_policy"] == "nsp"
    assert (masking["word_start"], masking["random_pieces"]) == ("reference", "all")
    assert masking["max_ngram"] == 2


def test_without_beam_the_extra_is_named(command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(beam_module, "beam", None)
    assert main([*command, "--out", f"{tmp_path}/out", "--runner", "DirectRunner"]) == 2
    assert "pip install 'albert-keras[beam]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_beam_receives_the_runner_and_the_options_after_two_dashes(command, passed_to_beam, capsys):
    words = ["--out", "gs://bucket/x", "--runner", "DataflowRunner", "--", "--project=p", "--x"]
    assert main([*command, *words]) == 0
    assert passed_to_beam["out"] == "gs://bucket/x"
    assert passed_to_beam["options"] == ["--runner=DataflowRunner", "--project=p", "--x"]
    assert "gs://bucket/x" in capsys.readouterr().out


def test_dataflow_without_googles_libraries_names_their_extra(
    command, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("apache_beam")
    monkeypatch.setitem(sys.modules, "apache_beam.io.gcp.gcsio", None)
    words = ["--out", f"{tmp_path}/out", "--runner", "DataflowRunner", "--", "--project=p"]
    assert main([*command, *words]) == 2
    shown = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    assert len(shown) == 1 and "pip install 'apache-beam[gcp]'" in shown[0]
    assert not (tmp_path / "out").exists()
