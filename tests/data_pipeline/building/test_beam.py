"""Apache Beam builds the same bytes as the local build, and fails as clearly."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import data_pipeline
from data_pipeline.building import beam as beam_module
from data_pipeline.building.beam import build_with_beam
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from tests.data_pipeline.building.test_interrupted_build import bytes_of

CONFIG = PretrainingDataConfig(max_seq_length=32)


@pytest.fixture(scope="module")
def needs_beam():
    pytest.importorskip("apache_beam")


def local_bytes(corpus, tokenizer, folder, config):
    return bytes_of(build_records(corpus, tokenizer, folder, config).path)


@pytest.mark.parametrize(
    "changes, scheme",
    [
        ({}, "file://"),
        ({"copies": 3, "num_shards": 3, "seed": 7}, ""),
        ({"input_format": "full-sentences"}, ""),
    ],
)
def test_the_bytes_are_those_of_the_local_build(
    changes, scheme, needs_beam, corpus, tiny_tokenizer, tmp_path
):
    config, out = CONFIG.replace(**changes), f"{scheme}{tmp_path}/made/beam"
    twice = ["--direct_runner_bundle_repeat=1"]  # each step, as after the loss of a machine
    source = f"{scheme}{corpus}"
    result = build_with_beam(source, tiny_tokenizer, out, config, beam_options=twice)
    expected = local_bytes(corpus, tiny_tokenizer, tmp_path / "local", config)
    assert str(result.path) == out and bytes_of(tmp_path / "made" / "beam") == expected
    assert len(result.info.shards) == (config.num_shards or 1)
    assert result.info.statistics["documents"] == 14


_SCRIPT = """
import sys
from data_pipeline.building.beam import build_with_beam
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.tokenizers.tokenization import Tokenizer

if __name__ == "__main__":
    corpus, tokenizer, out, *options = sys.argv[1:]
    config = PretrainingDataConfig(max_seq_length=32, num_shards=4)
    build_with_beam(corpus, Tokenizer.load(tokenizer), out, config, beam_options=options)
"""


@pytest.mark.slow  # processes of the portable workers that Flink and Spark use too
def test_the_bytes_do_not_depend_on_the_processes(needs_beam, corpus, tiny_tokenizer, tmp_path):
    tiny_tokenizer.save(tmp_path / "tokenizer")
    (tmp_path / "script.py").write_text(_SCRIPT)
    arguments = [corpus, tmp_path / "tokenizer", tmp_path / "beam"]
    options = ["--direct_num_workers=2", "--direct_running_mode=multi_processing"]
    subprocess.run(
        [sys.executable, tmp_path / "script.py", *arguments, "--runner=DirectRunner", *options],
        check=True,
        timeout=100,
        env=os.environ | {"PYTHONPATH": str(Path(data_pipeline.__file__).parent.parent)},
        capture_output=True,
    )
    config = CONFIG.replace(num_shards=4)
    expected = local_bytes(corpus, tiny_tokenizer, tmp_path / "local", config)
    assert bytes_of(tmp_path / "beam") == expected


def test_a_finished_build_is_left_and_another_one_refused(
    needs_beam, corpus, tiny_tokenizer, tmp_path
):
    made = build_records(corpus, tiny_tokenizer, tmp_path / "out", CONFIG)
    times = {path: path.stat().st_mtime_ns for path in made.path.rglob("*")}
    (made.path / ".beam").mkdir()  # of a pipeline whose launcher was killed
    again = build_with_beam(corpus, tiny_tokenizer, tmp_path / "out", CONFIG)
    assert again.info == made.info and again.shards_reused == len(made.info.shards)
    with pytest.raises(InputError, match="not empty"):
        build_with_beam(corpus, tiny_tokenizer, tmp_path / "out", CONFIG.replace(seed=1))
    assert times == {path: path.stat().st_mtime_ns for path in made.path.rglob("*")}


def test_what_an_unfinished_pipeline_left_is_replaced_and_nothing_else(
    needs_beam, corpus, tiny_tokenizer, tmp_path
):
    out = tmp_path / "beam"
    (out / "tokenizer").mkdir(parents=True)
    (out / "tokenizer" / "mine").touch()
    (out / "pretraining-00006-of-00007.tfrecord").write_bytes(b"half")
    with pytest.raises(InputError, match="not empty"):
        build_with_beam(corpus, tiny_tokenizer, out, CONFIG)
    (out / ".beam").mkdir()
    build_with_beam(corpus, tiny_tokenizer, out, CONFIG)
    assert bytes_of(out) == local_bytes(corpus, tiny_tokenizer, tmp_path / "local", CONFIG)


def test_a_bad_file_is_named_and_nothing_is_written(
    needs_beam, corpus, tiny_tokenizer, tmp_path, monkeypatch
):
    def never(*_):
        raise AssertionError("a shard is written")

    monkeypatch.setattr(beam_module, "_write_shard", never)
    bad = [tmp_path / "y.txt", tmp_path / "z.txt"]
    for path in bad:
        path.write_bytes(b"It began slowly.\n" * 5000 + b"Caf\xe9 closed.\n")
    place = rf"`{bad[0]}` must be text in UTF-8. Byte {17 * 5000 + 3} \(0xe9\) is not"
    for out in (tmp_path / "out", f"file://{tmp_path}/out"):
        with pytest.raises(InputError, match=place):
            build_with_beam([corpus, *bad], tiny_tokenizer, out, CONFIG)
    assert sorted(tmp_path.iterdir()) == bad


@pytest.mark.parametrize(
    "option, message",
    [
        ("--direct_num_worker=2", "`--direct_num_worker` is not an option"),
        ("--runner=FastRunner", "FastRunner"),
    ],
)
def test_a_wrong_option_is_named(option, message, needs_beam, corpus, tiny_tokenizer, tmp_path):
    with pytest.raises(InputError, match=message):
        build_with_beam(
            corpus, tiny_tokenizer, tmp_path / "out", CONFIG, beam_options=["--project=x", option]
        )
    assert not list(tmp_path.iterdir())
