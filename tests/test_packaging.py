"""The wheel has what the code reads, the source archive what the tests need."""

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata

import pytest

from tests.release_check import Fault, copy_sources, find_python, wheel_faults
from tests.repository import PACKAGES, PROJECT, needs_repository

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
def tracked_files(tmp_path_factory):
    """Returns a copy of the repository and the names of its files; skips where git is missing."""
    folder = tmp_path_factory.mktemp("source")
    try:
        return folder, copy_sources(folder)
    except Fault as fault:
        pytest.skip(str(fault))


@pytest.fixture(scope="module")
def archives(tracked_files, tmp_path_factory):
    """Returns the paths of the wheel and of the source archive of the repository."""
    found = []
    for kind in ("wheel", "sdist"):
        folder = tmp_path_factory.mktemp(kind)
        command = [sys.executable, "-c", BUILD.format(kind), folder]
        source, _ = tracked_files
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        found += folder.iterdir()
    return found


@needs_repository
def test_the_wheel_has_all_files_of_both_packages_and_no_others(archives, tracked_files):
    tracked_files = tracked_files[1]
    own = {name for name in tracked_files if name.startswith(tuple(f"{one}/" for one in NAMES))}
    own = {name for name in own if not name.endswith(".md") or "/templates/" in name}
    inside = {name for name in zipfile.ZipFile(archives[0]).namelist() if ".dist-info/" not in name}
    models = {name for name in inside if name.startswith("albert_keras/saved_models/")}
    assert inside - models == own


@needs_repository
def test_the_wheel_can_be_published(archives, tmp_path):
    assert wheel_faults(archives[0]) == []
    other = tmp_path / archives[0].name
    with zipfile.ZipFile(archives[0]) as whole, zipfile.ZipFile(other, "w") as changed:
        for name in whole.namelist():
            content = whole.read(name)
            if name.endswith("/METADATA"):
                content = re.sub(rb"License-Exp.*\n", b"", content)
            if name != "data_pipeline/py.typed":
                changed.writestr(name, content)
        changed.writestr("docs/page.md", "")
    text = "\n".join(wheel_faults(other))
    for word in ("other files", "py.typed", "licence and", "docs/page.md"):
        assert word in text
    assert len(text.splitlines()) == 4


def test_a_python_is_found_by_its_version():
    assert find_python("{}.{}".format(*sys.version_info)) and find_python("3.99") is None


@needs_repository
def test_the_source_archive_can_be_built_and_tested(archives, tracked_files):
    needed = {name for name in tracked_files[1] if name.startswith((*NAMES, "tests/", "docs/"))}
    needed |= {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"}
    needed |= {"pyproject.toml", "requirements.txt"}
    with tarfile.open(archives[1]) as opened:
        assert not needed - {name.partition("/")[2] for name in opened.getnames()}
