"""`requirements.txt` pins each package with the hashes of its files, and names no index."""

import re
import subprocess

from packaging.requirements import Requirement

from tests.repository import PROJECT, ROOT, needs_repository

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


def test_all_dependencies_are_pinned():
    project = PROJECT["project"]
    needed = project["dependencies"] + project["optional-dependencies"]["dev"]
    pinned = {entry.split("==")[0] for entry in _entries()}
    names = {re.match(r"[A-Za-z0-9_.-]+", one)[0].lower().replace("_", "-") for one in needed}
    assert names <= pinned


def test_the_pinned_versions_satisfy_the_project_on_each_python():
    for python in ("3.10", "3.11", "3.12", "3.13"):
        environment = {"python_version": python, "python_full_version": f"{python}.0"}
        chosen = {}
        for entry in _entries():
            one = Requirement(entry.split(" --hash")[0])
            if one.marker is None or one.marker.evaluate(environment):
                chosen[one.name] = one.specifier
        for requirement in map(Requirement, PROJECT["project"]["dependencies"]):
            if requirement.marker is None or requirement.marker.evaluate(environment):
                (pin,) = chosen[requirement.name]
                assert requirement.specifier.contains(pin.version), (python, str(requirement))


def test_one_line_says_which_pythons_have_wheels(tmp_path):
    words = ["make", "--silent", "setup", f"VENV={tmp_path}/venv", "PYTHON=python-of-tomorrow"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and not list(tmp_path.iterdir())
    (line,) = done.stdout.splitlines()
    assert "3.10, 3.11, 3.12 or 3.13" in line and "no wheels for others" in line
