"""A build that was stopped, by whatever, goes on with the same call and ends in the same bytes."""

import errno
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from data_pipeline.building import encoding, shards
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo

CONFIG = PretrainingDataConfig(max_seq_length=32, num_shards=5, copies=2)


def bytes_of(folder):
    """Returns all that a folder holds, hidden files too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def small_parts(monkeypatch):
    """Makes many parts of a small corpus."""
    monkeypatch.setattr(encoding, "_SMALLEST_PART", 4000)


@pytest.fixture(scope="module")
def undisturbed(corpus, tiny_tokenizer, tmp_path_factory):
    """Returns all files of an undisturbed build of `corpus`."""
    out = tmp_path_factory.mktemp("undisturbed") / "records"
    return bytes_of(build_records(corpus, tiny_tokenizer, out, CONFIG).path)


def failing_at(monkeypatch, module, name, call, error):
    """Makes a function of a module raise at its n-th call."""
    calls, function = itertools.count(), getattr(module, name)

    def fail(*args, **kwargs):
        if next(calls) == call:
            raise error
        return function(*args, **kwargs)

    monkeypatch.setattr(module, name, fail)


@pytest.mark.parametrize(
    "module, name, call, error",
    [
        (encoding, "encode_document", 7, KeyboardInterrupt()),
        (shards, "encode_instances", 0, OSError(errno.ENOSPC, "No space left")),
        (shards, "write_index", 3, KeyboardInterrupt()),
    ],
)
def test_a_build_goes_on_where_it_failed(
    module, name, call, error, corpus, small_parts, undisturbed, tiny_tokenizer, tmp_path
):
    out = tmp_path / "records"
    with pytest.MonkeyPatch.context() as monkeypatch:
        failing_at(monkeypatch, module, name, call, error)
        with pytest.raises((KeyboardInterrupt, OSError), match="^$|No space left"):
            build_records(corpus, tiny_tokenizer, out, CONFIG)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.tfrecord")}
    assert not (out / "dataset_info.json").exists()
    result = build_records(corpus, tiny_tokenizer, out, CONFIG)
    assert bytes_of(out) == undisturbed
    # A record file appears together with its index.
    assert result.shards_reused == len(before) == (3 if name == "write_index" else 0)
    reused = [name for name, made in before.items() if (out / name).stat().st_mtime_ns == made]
    assert len(reused) == result.shards_reused


def test_a_finished_build_is_left_as_it_is(corpus, undisturbed, tiny_tokenizer, tmp_path):
    files = sorted(map(str, corpus.iterdir()), reverse=True)  # the order makes no difference
    build_records(files, tiny_tokenizer, tmp_path / "out", CONFIG)
    assert bytes_of(tmp_path / "out") == undisturbed
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    result = build_records(corpus, tiny_tokenizer, tmp_path / "out", CONFIG)
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    assert result.info == DatasetInfo.load(tmp_path / "out")


@pytest.fixture
def unfinished(corpus, small_parts, tiny_tokenizer, tmp_path):
    """Returns the folder of a build that was stopped at its third shard."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        failing_at(monkeypatch, shards, "write_index", 2, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            build_records(corpus, tiny_tokenizer, tmp_path / "records", CONFIG)
    return tmp_path / "records"


def test_an_unfinished_build_with_other_settings_is_refused(unfinished, corpus, tiny_tokenizer):
    before = bytes_of(unfinished)
    with pytest.raises(InputError, match="unfinished build with another `seed`, `masking`"):
        config = CONFIG.replace(seed=1, masking={"max_ngram": 2})
        build_records(corpus, tiny_tokenizer, unfinished, config)
    assert bytes_of(unfinished) == before


def test_a_corpus_that_changed_meanwhile_is_built_as_it_is_now(
    unfinished, corpus, tiny_tokenizer, tmp_path
):
    shutil.copytree(corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / "02.txt").write_text("Another text. It is short.")
    build_records(tmp_path / "corpus", tiny_tokenizer, unfinished, CONFIG)
    build_records(tmp_path / "corpus", tiny_tokenizer, tmp_path / "anew", CONFIG)
    assert bytes_of(unfinished) == bytes_of(tmp_path / "anew")


def test_a_damaged_finished_shard_is_built_again(unfinished, corpus, undisturbed, tiny_tokenizer):
    shard = unfinished / "pretraining-00000-of-00005.tfrecord"
    damaged = bytearray(shard.read_bytes())
    damaged[100] ^= 1
    shard.write_bytes(damaged)
    result = build_records(corpus, tiny_tokenizer, unfinished, CONFIG)
    assert bytes_of(unfinished) == undisturbed and result.shards_reused == 1


_BUILD = """
import sys
from data_pipeline.building.build import build_records
from data_pipeline.building import encoding
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.tokenizers.tokenization import Tokenizer

if __name__ == "__main__":
    corpus, tokenizer, out = sys.argv[1:]
    encoding._SMALLEST_PART = 4000
    config = PretrainingDataConfig(max_seq_length=32, num_shards=5, copies=2)
    build_records(corpus, Tokenizer.load(tokenizer), out, config, workers=2)
"""


def test_a_killed_build_goes_on(
    corpus, tiny_vocabulary, tiny_tokenizer, small_parts, undisturbed, tmp_path
):
    """Whatever the hash seed and the workers, and no reader finds half a shard meanwhile."""
    (tmp_path / "build.py").write_text(_BUILD)
    out = tmp_path / "records"
    command = [sys.executable, tmp_path / "build.py", corpus, tiny_vocabulary.path, out]
    seeded = os.environ | {"PYTHONHASHSEED": "7"}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=seeded) as process:
        while process.poll() is None and not (shards := list(out.glob("*.tfrecord"))):
            time.sleep(0.005)
        assert all(path.read_bytes() == undisturbed[path.name] for path in shards)
        process.send_signal(signal.SIGKILL)
    build_records(corpus, tiny_tokenizer, out, CONFIG)
    assert bytes_of(out) == undisturbed
