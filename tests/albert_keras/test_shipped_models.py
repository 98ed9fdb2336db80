"""The model in the box: found by its name, checked, and taken by every command."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from albert_keras import open_weights, shipped_models
from albert_keras.cli import main
from albert_keras.shipped_models import SHIPPED_MODELS, find_model
from data_pipeline.errors import InputError
from data_pipeline.files import find_damage
from tests.repository import ROOT, needs_repository

NAME = "albert-mini-en"
IN_REPOSITORY = ROOT / "saved_models" / NAME
MASKED = "The [MASK] left the [MASK]."
#: Bytes of what a server loads, and of the whole folder.
MAX_EXPORT, MAX_BOX = 8_500_000, 14_000_000

needs_box = pytest.mark.skipif(
    not (IN_REPOSITORY / "1").is_dir(), reason=f"the repository has no {NAME} yet"
)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch, tmp_path):
    """Works in an empty folder; commands set up logging for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def box(tiny_export, tmp_path_factory, monkeypatch):
    """Returns the folder of a small model that is shipped for the length of a test."""
    folders = tmp_path_factory.mktemp("box") / "package", tmp_path_factory.mktemp("box")
    monkeypatch.setattr(shipped_models, "FOLDERS", folders)
    return shutil.copytree(tiny_export, folders[1] / NAME)


def test_a_name_leads_to_the_folder_unless_there_is_such_a_path(box):
    assert find_model(NAME) == box and find_model(Path(NAME)) == box
    installed = shutil.copytree(box, shipped_models.FOLDERS[0] / NAME)
    assert find_model(NAME) == installed
    Path(NAME).mkdir()
    for path in (NAME, "random", "runs/albert-mini-en", "."):
        assert find_model(path) == Path(path)


def test_a_name_that_is_nearly_right_is_refused(capsys):
    assert main(["fill-mask", "albert-mini-eng", MASKED]) == 2
    error = capsys.readouterr().err
    assert "`albert-mini-eng`. Did you mean `albert-mini-en`?" in error


def test_a_model_that_is_not_installed_is_missed(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(shipped_models, "FOLDERS", (tmp_path / "a", tmp_path / "b"))
    assert main(["fill-mask", NAME, MASKED]) == 2
    error = capsys.readouterr().err
    assert "is not part of this installation" in error and "pip install ." in error


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("file", ["1/export.json", "model-1.keras"])
def test_damage_is_one_error_that_names_the_file(box, file):
    flip(box / file)
    with pytest.raises(InputError, match=f"is damaged: `.*{Path(file).name}` has SHA-256"):
        open_weights(NAME)


def test_the_digests_list_every_file_of_a_version(tiny_export):
    listed = json.loads((tiny_export / "1" / "digests.json").read_text())["files"]
    files = {path for path in tiny_export.rglob("*") if path.is_file()}
    found = {(tiny_export / "1" / name).resolve() for name in listed}
    left = {path.relative_to(tiny_export).as_posix() for path in files - found}
    assert left == {"1/digests.json"}
    assert find_damage(tiny_export / "1") is None
    assert "cannot be read" in find_damage(tiny_export / "1", step=12)  # it has none


@needs_repository
def test_setup_copies_the_same_models():
    listed = re.search(r"_MODELS = \((.*?)\)", (ROOT / "albert_keras/wheel.py").read_text())[1]
    assert tuple(re.findall(r'"(.*?)"', listed)) == tuple(SHIPPED_MODELS)
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert all(f"!/saved_models/{name}/" in ignored for name in SHIPPED_MODELS)


@needs_box
def test_the_box_is_complete_and_small():
    assert find_model(NAME).samefile(IN_REPOSITORY)
    sizes = {path: path.stat().st_size for path in IN_REPOSITORY.rglob("*") if path.is_file()}
    version = sum(size for path, size in sizes.items() if path.is_relative_to(IN_REPOSITORY / "1"))
    assert version <= MAX_EXPORT and sum(sizes.values()) <= MAX_BOX
    for name in ("README.md", "curves.png", "model-1.keras"):
        assert (IN_REPOSITORY / name).is_file(), name
    listed = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "."]
    done = subprocess.run(listed, cwd=IN_REPOSITORY, capture_output=True, text=True)
    assert done.returncode != 0 or not done.stdout  # no file is hidden from git


@needs_box
def test_the_box_contains_neither_texts_nor_paths(shared_data):
    content = [path.read_bytes() for path in IN_REPOSITORY.rglob("*") if path.is_file()]
    books = sorted((shared_data / "corpus").glob("books-en*/*.txt"))[::8]
    assert books
    for book in books:
        lines = [line.strip() for line in book.read_bytes().splitlines()]
        lines = [line for line in lines if len(line) > 40]
        for line in lines[:: max(1, len(lines) // 20)]:
            assert not any(line in each for each in content), (book, line)
    record = (IN_REPOSITORY / "1" / "export.json").read_text()
    assert not re.search(r'": "/', record) and '"command"' not in record
