"""The tokenizer of a model, wherever a tokenizer can be given."""

import shutil

import pytest

from albert_keras import load_tokenizer, shipped_models
from albert_keras.cli import main
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.tokenizers.tokenization import Tokenizer

NAME = "albert-mini-en"


@pytest.fixture
def named(tiny_export, tmp_path, monkeypatch):
    """Returns the name of a shipped model."""
    shutil.copytree(tiny_export, tmp_path / "shipped" / NAME)
    monkeypatch.setattr(shipped_models, "FOLDERS", (tmp_path / "shipped",))
    monkeypatch.chdir(tmp_path)
    shipped_models._checked.cache_clear()
    yield NAME
    shipped_models._checked.cache_clear()


def test_the_tokenizer_of_a_model_is_found(tiny_run, tiny_export, named):
    expected = Run.open(tiny_run).tokenizer.digest
    for model in (tiny_run / "tokenizer", tiny_run, str(tiny_export), tiny_export / "1", named):
        assert load_tokenizer(model).digest == expected


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    with pytest.raises(InputError, match="tokenizer"):
        load_tokenizer(tmp_path)
    with pytest.raises(InputError, match="nowhere"):
        load_tokenizer(tmp_path / "nowhere")


def test_records_are_built_and_vocabularies_extended_with_it(
    named, tiny_run, tiny_corpus, tmp_path, capsys
):
    (tmp_path / "text.txt").write_text("\n".join(tiny_corpus), encoding="utf-8")
    build = ["data", "build", "--corpus", "text.txt", "--tokenizer", named, "--out", "records"]
    assert main([*build, "--max-seq-length", "32"]) == 0
    assert DatasetInfo.load(tmp_path / "records").tokenizer_digest == load_tokenizer(named).digest
    extend = ["vocab", "extend", "--tokenizer", str(tiny_run), "--corpus", "text.txt"]
    assert main([*extend, "--add", "3", "--out", "extended"]) == 0
    assert "--init-from ... --out" in capsys.readouterr().out
    assert Tokenizer.load("extended").vocab_size == load_tokenizer(tiny_run).vocab_size + 3
