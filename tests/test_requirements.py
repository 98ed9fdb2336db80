"""`requirements.txt` pins each package with the hashes of its files, and names no index."""

import re
import subprocess
import sys

import pytest
from packaging.requirements import Requirement

from tests.repository import ROOT, needs_repository

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = needs_repository


def _entries():
    """Returns the lines of each package: the pin with its markers, and the hashes."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line for line in joined.split("\n") if line.strip()]


def test_each_package_is_pinned_with_hashes():
    entries = _entries()
    assert len(entries) > 100
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+ .*?(--hash=sha256:[0-9a-f]{64}\s*)+$", entry), entry
        assert "://" not in entry and " @ " not in entry


def _project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_all_dependencies_are_pinned():
    project = _project()["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["dev"]
    pinned = {entry.split("==")[0] for entry in _entries()}
    names = {re.match(r"[A-Za-z0-9_.-]+", one)[0].lower().replace("_", "-") for one in needed}
    assert names <= pinned


def _dependency_lines():
    """Yields each requirement of `pyproject.toml`, with the comment at the end of its line."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for block in re.findall(r"^(?:dependencies|gpu|bench) = \[\n(.*?)^\]", text, re.M | re.S):
        for line in block.splitlines():
            if found := re.fullmatch(r' +"(.+)",(?:  # (.+))?', line):
                yield Requirement(found[1]), found[2] or ""


def test_each_pin_that_holds_a_package_back_has_a_reason():
    pinned = [
        (Requirement(entry.split(" --hash")[0]), entry.split("==")[1].split()[0])
        for entry in _entries()
    ]
    held_back = set()
    for requirement, reason in _dependency_lines():
        bounds = {one.operator: one.version for one in requirement.specifier}
        of_package = [
            int(version.split(".")[0]) for one, version in pinned if one.name == requirement.name
        ]
        upper = bounds.get("<")
        is_next_major = upper and upper.isdigit() and int(upper) > max(of_package, default=0)
        if "==" in bounds or requirement.marker or (upper and not is_next_major):
            held_back.add(requirement.name)
            assert len(reason) > 7, requirement
    assert {"tensorflow", "numpy", "protobuf", "sentencepiece", "onnx"} <= held_back
    assert "pydantic" not in held_back


def test_the_pinned_versions_satisfy_the_project_on_each_python():
    for python in ("3.10", "3.11", "3.12", "3.13"):
        environment = {"python_version": python, "python_full_version": f"{python}.0"}
        chosen = {}
        for entry in _entries():
            one = Requirement(entry.split(" --hash")[0])
            if one.marker is None or one.marker.evaluate(environment):
                chosen[one.name] = one.specifier
        for requirement in map(Requirement, _project()["project"]["dependencies"]):
            if requirement.marker is None or requirement.marker.evaluate(environment):
                (pin,) = chosen[requirement.name]
                assert requirement.specifier.contains(pin.version), (python, str(requirement))


@pytest.mark.parametrize("python", ["false", "python-of-tomorrow"])
def test_one_line_says_which_pythons_have_wheels(tmp_path, python):
    words = ["make", "--silent", "setup", f"VENV={tmp_path}/venv", f"PYTHON={python}"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and not list(tmp_path.iterdir())
    (line,) = done.stdout.splitlines()
    assert "3.10, 3.11, 3.12 or 3.13" in line and "no wheels for others" in line


def test_setup_requires_the_hashes():
    assert "--require-hashes -r requirements.txt" in (ROOT / "Makefile").read_text()
