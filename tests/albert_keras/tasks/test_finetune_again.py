"""A fine-tuning goes on as the same one; another is refused, and changes nothing."""

import os
import shutil

import pytest

from albert_keras.models.text_classifiers import AlbertForClassification
from data_pipeline.errors import InputError
from data_pipeline.files import LOCK_FILE
from data_pipeline.folder_lock import FolderLock
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import build_model


@pytest.fixture
def toy_copy(tuned_toy, tmp_path):
    """Returns a copy of the folder of the toy that was learnt."""
    return shutil.copytree(tuned_toy.path, tmp_path / "copy")


def bytes_of(folder, *patterns):
    found = [path for pattern in patterns for path in sorted(folder.rglob(pattern))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found if path.is_file()}


def refused(tune, out, says, *arguments, **words):
    """Makes sure that a call is refused, for that reason, and changes no file."""
    before = bytes_of(out, "*") if out.is_dir() else None
    with pytest.raises(InputError, match=says):
        tune(out, *arguments, **words)
    assert (bytes_of(out, "*") if out.is_dir() else None) == before


def test_the_same_call_again_trains_nothing(tuned_toy, toy_copy, tune, monkeypatch):
    monkeypatch.setattr(AlbertForClassification, "fit", None)
    before = bytes_of(toy_copy, "model.ckpt*", "*.json*", "errors.tsv")
    again = tune(toy_copy)
    after = bytes_of(toy_copy, "model.ckpt*", "*.json*", "errors.tsv")
    changed = {name for name in before if after[name] != before[name]}
    assert before.keys() == after.keys() and changed <= {"results.json"}
    (seed,), (first,) = again.seeds, tuned_toy.seeds
    assert seed._replace(seconds=0) == first._replace(seconds=0)
    assert seed.seconds > 0.2 * first.seconds  # of the training, not of this call


def test_other_settings_and_other_weights_are_refused_by_name(
    toy_copy, tune, tiny_tokenizer, tmp_path
):
    refused(tune, toy_copy, "config.optimizer.lr: was 0.001, is now 0.002", lr=0.002)
    build_model("classification", SHAPE, 2, seed=9).save(tmp_path / "other.keras")
    words = {"albert_config": SHAPE, "tokenizer": tiny_tokenizer}
    refused(
        tune,
        toy_copy,
        "data.origin_digest: was 'random', is now",
        origin=tmp_path / "other.keras",
        **words,
    )


def test_a_second_process_in_the_same_folder_is_refused(toy_copy, tune, untrained):
    before = bytes_of(toy_copy, "results.json")
    with FolderLock(toy_copy) as lock:
        lock.take()
        refused(tune, toy_copy, f"is being trained by process {os.getpid()} on host ")
    assert bytes_of(toy_copy, "results.json") == before and not untrained
    assert tune(toy_copy).seeds and not (toy_copy / LOCK_FILE).exists()
