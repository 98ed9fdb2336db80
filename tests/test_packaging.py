"""The wheel has what the code reads, the source archive what the tests need; no package is idle."""

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata

import pytest

from tests.repository import PACKAGES, ROOT, needs_repository

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAMES = ("albert_keras", "data_pipeline")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Packages that are imported, but by another package that does not require them itself.
IMPORTED_BY_OTHERS = {
    "keras",  # Keras 3, by KerasHub
    "setuptools",  # pkg_resources, by tensorflow-hub
    "tensorflow-addons",  # by nothing: its documentation is part of the text of the demo
    "tf-keras",  # by TensorFlow 2.21, as its Keras
    "tensorboard",  # by the summaries of TensorFlow 2.21
}
#: Modules of packages that may not be installed here, or that Python 3.10 does not find.
MODULES = {
    "apache-beam": "apache_beam",
    "keras-hub": "keras_hub",
    "keras-nlp": "keras_nlp",
    "mlflow-skinny": "mlflow",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "openvino": "openvino",
    "protobuf": "google",
    "pyarrow": "pyarrow",
    "scikit-learn": "sklearn",
    "tensorflow-addons": "tensorflow_addons",
    "tokenizers": "tokenizers",
    "torch": "torch",
    "transformers": "transformers",
    "wandb": "wandb",
}
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"


def imported_modules():
    """Returns the top-level modules that packages and benchmarks import or name as text."""
    found = set()
    folders = [*(PACKAGES / name for name in NAMES), ROOT / "tests" / "benchmarks"]
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module.split(".")[0])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {word for word in MODULES.values() if word == node.value}
    return found


@pytest.mark.parametrize("extra", [None, "beam", "bench", "tokenizers", "track"])
def test_each_dependency_is_imported(extra):
    listed = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    modules, imported = {}, imported_modules()
    for module, packages in metadata.packages_distributions().items():
        for package in packages:
            modules.setdefault(package.lower().replace("_", "-"), set()).add(module)
    idle = []
    for requirement in listed:
        name = re.match(r"[A-Za-z0-9_.-]+", requirement)[0]
        own = {MODULES[name]} if name in MODULES else modules.get(name, {name.replace("-", "_")})
        if not own & imported and name not in IMPORTED_BY_OTHERS:
            idle.append(name)
    assert not idle


def test_the_version_is_written_once():
    pattern = rf"[\"'=]{re.escape(PROJECT['version'])}[\"']"
    files = [path for name in NAMES for path in (PACKAGES / name).rglob("*.py")]
    assert len(files) > 300
    copies = [path for path in files if re.search(pattern, path.read_text(encoding="utf-8"))]
    assert not copies
    assert metadata.version(PROJECT["name"]) == PROJECT["version"]


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
