"""The folder of a run: it goes on as what it was."""

import json
import re
import shutil
import sys

import pytest

from albert_keras.runs.run import Run
from albert_keras.runs.run_record import git_commit
from albert_keras.training.record_source import RecordSource
from data_pipeline.errors import InputError
from data_pipeline.limits import read_json
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer


@pytest.fixture(scope="module")
def records(tiny_records):
    return RecordFiles(tiny_records)


@pytest.fixture
def begin(tmp_path, tiny_training, records):
    """Returns a function that begins or continues a run of `tmp_path` with changed settings."""

    def begin(data=records, model=(), optimizer=(), **training):
        values = tiny_training.model_dump(exclude_unset=True)
        values["training"] |= training
        values["model"] |= dict(model)
        values["optimizer"] |= dict(optimizer)
        config = type(tiny_training)(**values).resolved("float32")
        shape = config.albert_config(data.info.vocab_size)
        source = RecordSource(data, config.training)
        run = Run.prepare(tmp_path / "run", config, shape, source)
        run.write()
        return run

    return begin


@pytest.fixture
def half(tiny_records, tmp_path):
    """Returns one of the two shards of the records as a data set."""
    shutil.copytree(tiny_records, tmp_path / "half")
    info = DatasetInfo.load(tmp_path / "half")
    info.replace(shards=info.shards[:1]).save(tmp_path / "half")
    return RecordFiles(tmp_path / "half")


@pytest.fixture(scope="module")
def other_tokenizer(tiny_tokenizer):
    """Returns `tiny_tokenizer` with one setting changed."""
    config = tiny_tokenizer.config.replace(compat_py3=not tiny_tokenizer.config.compat_py3)
    return Tokenizer(tiny_tokenizer.model_bytes, config)


def read(run):
    return read_json(run.path / "run.json")  # without its digest


def edit(run, change):
    record = read(run)
    change(record)
    (run.path / "run.json").write_text(json.dumps(record))


@pytest.mark.parametrize("name", ["run.json", "albert_config.json"])
def test_a_shape_that_changed_by_itself_is_refused(begin, name):
    path = begin().path / name
    content = path.read_text()
    [layers] = set(re.findall(r'"num_hidden_layers": (\d)', content))
    path.write_text(content.replace(f'layers": {layers}', 'layers": 7'))
    with pytest.raises(InputError, match="num_hidden_layers|is damaged or was edited"):
        Run.open(path.parent)
    path.write_text(content)
    Run.open(path.parent)


def test_a_record_tells_where_a_run_comes_from(begin, records, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["albert-keras", "pretrain", "--steps", "12"])
    record = read(begin())
    assert record["command"] == sys.argv
    assert record["data"] == {
        "path": str(records.folder),
        "fingerprint": records.info.fingerprint,
        "num_records": len(records),
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
        "corpus_digest": records.info.corpus_digest,
        "builder_version": records.info.builder_version,
        "language": "en",
        "origin": None,
        "origin_digest": None,
    }
    assert record["git_commit"] == git_commit()
    assert record["versions"]["python"].count(".") == 2


def test_the_same_command_goes_on_and_leaves_the_record_alone(begin, monkeypatch):
    before = (begin().path / "run.json").read_bytes()
    monkeypatch.setattr(sys, "argv", ["another", "call"])
    run = begin()
    assert (run.path / "run.json").read_bytes() == before


def test_a_change_is_refused_with_both_values(begin, half):
    begin()
    with pytest.raises(InputError) as caught:
        begin(data=half, model={"hidden_dropout_prob": 0.1})
    lines = str(caught.value).splitlines()
    assert lines[1] == ("  albert_config.hidden_dropout_prob: was 0.0, is now 0.1")
    assert lines[2].startswith("  data.fingerprint: was ")
    assert len(lines) == 4 and lines[3].endswith("choose another `out`.")


def test_what_computes_nothing_else_may_change_and_takes_effect(begin):
    begin()
    free = {"strategy": "single", "accumulation_steps": 2, "recompute": True}
    free |= {"checkpoint_every": 7, "keep_checkpoints": 1, "report_every": 3}
    free |= {"evaluate_every": 5}
    run = begin(**free)
    assert free.items() <= run.record["config"]["training"].items()
    assert run.checkpoints.keep == run.record["config"]["training"]["keep_checkpoints"]
    assert read(run) == run.record


def test_another_tokenizer_in_the_folder_is_refused_and_copied_again(
    begin, records, other_tokenizer
):
    run = begin()
    other_tokenizer.save(run.path / "tokenizer")
    for attempt in (begin, lambda: Run.open(run.path)):
        with pytest.raises(InputError) as caught:
            attempt()
        assert records.info.tokenizer_digest in str(caught.value)
        assert f"Received: {other_tokenizer.digest}. Remove that folder" in str(caught.value)
    shutil.rmtree(run.path / "tokenizer")
    assert begin().tokenizer.digest == records.info.tokenizer_digest


def test_a_run_that_cannot_be_begun_leaves_no_folder(begin, half, monkeypatch):
    def fail(*arguments, **words):
        raise OSError("no space left")

    monkeypatch.setattr(RecordSource, "save_tokenizer", fail)
    with pytest.raises(OSError, match="no space left"):
        begin(data=half)
    monkeypatch.undo()
    assert begin(data=half).record["data"]["num_records"] == len(half)


def test_an_empty_folder_that_is_there_is_used(begin, tmp_path):
    (tmp_path / "run").mkdir()
    inode = (tmp_path / "run").stat().st_ino
    assert begin().path.stat().st_ino == inode
