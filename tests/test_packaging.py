"""The wheel has what the code reads, the source archive what the tests need."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata

import pytest

from tests.repository import PACKAGES, PROJECT, ROOT, needs_repository

NAMES = ("albert_keras", "data_pipeline")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"


def test_the_version_is_written_once():
    pattern = rf"[\"'=]{re.escape(PROJECT['project']['version'])}[\"']"
    files = [path for name in NAMES for path in (PACKAGES / name).rglob("*.py")]
    assert len(files) > 100
    copies = [path for path in files if re.search(pattern, path.read_text(encoding="utf-8"))]
    assert not copies
    assert metadata.version(PROJECT["project"]["name"]) == PROJECT["project"]["version"]


@pytest.fixture(scope="module")
def tracked_files():
    """Returns the names of the files of the repository; skips where git does not know them."""
    listed = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    done = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("this copy of the repository has no git")
    return [name for name in done.stdout.split("\0") if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def archives(tracked_files, tmp_path_factory):
    """Returns the names in the wheel and in the source archive of the repository."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked_files:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, source / name)
    names = []
    for kind in ("wheel", "sdist"):
        command = [sys.executable, "-c", BUILD.format(kind), source.parent / kind]
        (source.parent / kind).mkdir(exist_ok=True)
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        (archive,) = (source.parent / kind).iterdir()
        if kind == "wheel":
            names.append(set(zipfile.ZipFile(archive).namelist()))
        else:
            with tarfile.open(archive) as opened:
                names.append({name.partition("/")[2] for name in opened.getnames()})
    return names


@needs_repository
def test_the_wheel_has_all_files_of_both_packages_and_no_others(archives, tracked_files):
    own = {name for name in tracked_files if name.startswith(tuple(f"{one}/" for one in NAMES))}
    own = {name for name in own if not name.endswith(".md") or "/templates/" in name}
    inside = {name for name in archives[0] if ".dist-info/" not in name}
    models = {name for name in inside if name.startswith("albert_keras/saved_models/")}
    assert inside - models == own


@needs_repository
def test_the_source_archive_can_be_built_and_tested(archives, tracked_files):
    needed = {name for name in tracked_files if name.startswith((*NAMES, "tests/", "docs/"))}
    needed |= {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"}
    needed |= {"pyproject.toml", "requirements.txt"}
    assert not needed - archives[1]
