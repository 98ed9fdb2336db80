"""`albert-keras data build` as a user runs it: on this machine, in processes, by Apache Beam."""

import json
import os
import re
import subprocess
import sys

import pytest

from albert_keras.cli import main
from data_pipeline.building import beam as beam_module
from data_pipeline.building.result import BuildResult


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


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


def bytes_of(folder):
    """Returns all that a folder holds, hidden files too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_help_loads_nothing_that_takes_long():
    check = (
        "import sys; from albert_keras.cli import main\n"
        "code = main(['data', 'build', '--help'])\n"
        "print(code, {'tensorflow', 'numpy', 'apache_beam'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "0 set()", done.stderr


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


MISTAKES = {
    "preset": (["--preset", "refrence"], "`preset=refrence` is unknown. Did you mean `reference`"),
    "splitter": (["--splitter", "punkt"], "`splitter=punkt` is unknown. Expected one of: line"),
    "endless records": (["--max-seq-length", "100000"], "max_seq_length` must be at most 8192"),
    "language of another script": (["--language", "ja"], "`ja` is written in Han and Hiragana"),
    "option": (["--max-seq-lenght", "64"], "No such option: --max-seq-lenght"),
    "option before Beam's": (
        ["--runner", "DirectRunner", "--max-seq-lenght", "64", "--", "--project=p"],
        "No such option: --max-seq-lenght",
    ),
    "pattern without quotes": (["b.txt"], r"unexpected extra argument \(b.txt\).* Quote a pattern"),
    "word behind --": (
        ["--runner", "DataflowRunner", "--", "--project", "p"],
        r"unexpected extra argument \(p\).* have the form `--name=value`",
    ),
    "Beam option without a runner": (
        ["--", "--project=p", "--region=r"],
        "require `--runner NAME`. Received: --project=p --region=r",
    ),
    "option of ours behind --": (
        ["--runner", "FlinkRunner", "--", "--seed=3"],
        "`--seed` must precede `--`",
    ),
    "second runner": (
        ["--runner", "FlinkRunner", "--", "--runner=SparkRunner"],
        "`--runner` must precede `--`",
    ),
    "workers of other machines": (
        ["--runner", "DataflowRunner", "--workers", "2"],
        "`--workers` must not be given with `--runner DataflowRunner`.* --workers 2",
    ),
    "scheme without a runner": (["--out", "gs://bucket/x"], "`gs://bucket/x` .* Add --runner"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_short_message_and_leaves_nothing(
    mistake, command, passed_to_beam, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    words, message = MISTAKES[mistake]
    command += ["--out", "out"]
    for option in {"--out", "--max-seq-length"}.intersection(words):  # each is given once
        start = command.index(option)
        del command[start : start + 2]
    assert main([*command, *words]) == 2
    shown = capfd.readouterr().err
    assert re.search(message, shown) and "Traceback" not in shown
    assert len(shown.strip().splitlines()) <= 4
    assert sorted(tmp_path.rglob("*")) == before and not passed_to_beam


def test_the_next_command_starts_from_the_model_whose_vocabulary_was_extended(
    command, tiny_tokenizer, tiny_corpus, tmp_path, capsys
):
    run = tmp_path / "my run"
    tiny_tokenizer.save(run / "tokenizer")
    (run / "run.json").write_text("{}")
    extend = ["vocab", "extend", "--tokenizer", f"{run}/tokenizer", "--add", "6"]
    extend += ["--corpus", f"{tmp_path}/corpus", "--out", f"{tmp_path}/larger vocabulary"]
    assert main(extend) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"next: albert-keras data build --corpus ... --tokenizer '{tmp_path}/larger vocabulary' "
        f"--out records/, then albert-keras pretrain --data records/ --init-from '{run}' --out ..."
    )
    out = f"{tmp_path}/my records"
    command[command.index("--tokenizer") + 1] = f"{tmp_path}/larger vocabulary"
    assert main([*command, "--out", out]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"next: albert-keras pretrain --data '{out}' --init-from ... --out runs/..."
    )


def test_the_next_command_after_an_ordinary_build_starts_at_random(command, tmp_path, capsys):
    assert main([*command, "--out", f"{tmp_path}/out"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"next: albert-keras pretrain --data {tmp_path}/out --out runs/..."
    )


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


@pytest.mark.parametrize("runner", ["DirectRunner", "direct"])
def test_workers_are_processes_of_the_direct_runner(runner, command, passed_to_beam):
    assert main([*command, "--out", "out", "--runner", runner, "--workers", "3"]) == 0
    processes = ["--direct_num_workers=3", "--direct_running_mode=multi_processing"]
    assert passed_to_beam["options"] == [f"--runner={runner}", *processes]


def test_a_beam_build_has_the_same_result(command, tmp_path, capsys):
    pytest.importorskip("apache_beam")
    passed = []
    for name, words in (("local", []), ("beam", ["--runner", "DirectRunner"])):
        assert main([*command, "--out", f"{tmp_path}/{name}", "--json", *words]) == 0
        passed.append(json.loads(capsys.readouterr().out))
        assert passed[-1].pop("path") == f"{tmp_path}/{name}" and passed[-1].pop("seconds") >= 0
    assert passed[0] == passed[1] and passed[1]["documents"] == 12
    assert bytes_of(tmp_path / "beam") == bytes_of(tmp_path / "local")


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
